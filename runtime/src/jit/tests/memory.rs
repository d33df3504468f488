//! Loads and stores.

use super::*;

#[test]
fn memory_of_every_type_with_offsets_wraps_grows_and_traps() {
    let mut funcs = Vec::new();
    for ty in Ty::ALL {
        for offset in [0, 6, -3] {
            let mut b = function(&[Ty::I16, ty], None);
            let (addr, src) = (b.param(0), b.param(1));
            b.inst(InstData::Store { addr, offset, src });
            let dst = b.local(ty);
            b.inst(InstData::Load { dst, addr, offset: offset - 1 });
            stores(&mut b, 512, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
        }
    }
    let count = funcs.len() as u32;
    let mut pair = Pair::of(funcs);
    for func in 0..count {
        for addr in [0, 4, 1000, 1533, 1540, 40_000, 49_140, 49_149, 49_152, 0xfffd, 0xffff] {
            pair.start(func, &[addr, 0x0123_4567_89ab_cdef]);
        }
    }
}
