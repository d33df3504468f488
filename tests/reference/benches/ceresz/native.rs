//! The codec as one would write it for a processor: no mesh, no checks of the bound.

const BLOCK: usize = 32;
const MASKS: [u32; 5] = [0x5555_5555, 0x3333_3333, 0x0f0f_0f0f, 0x00ff_00ff, 0x0000_ffff];

/// Appends the block stream of whole blocks.
pub(crate) fn compress(field: &[f32], recip: f32, words: &mut Vec<u32>) {
    let (blocks, _) = field.as_chunks::<BLOCK>();
    for block in blocks {
        let levels = block.map(|value| (value * recip + 0.5).floor() as i32);
        let mut differences = levels;
        for i in 1..BLOCK {
            differences[i] = levels[i].wrapping_sub(levels[i - 1]);
        }
        let signs = (0..BLOCK).fold(0, |word, i| word | u32::from(differences[i] < 0) << i);
        let mut sizes = differences.map(i32::unsigned_abs);
        let length = u32::BITS - sizes.iter().fold(0, |all, size| all | size).leading_zeros();
        words.push(length);
        if length > 0 {
            words.push(signs);
            transpose(&mut sizes);
            words.extend_from_slice(&sizes[..length as usize]);
        }
    }
}

/// Appends the values of a block stream.
pub(crate) fn decompress(mut words: &[u32], step: f32, field: &mut Vec<f32>) {
    while let Some((&length, rest)) = words.split_first() {
        words = rest;
        let mut sizes = [0; BLOCK];
        let mut signs = 0;
        if length > 0 {
            let (planes, rest) = words[1..].split_at(length as usize);
            signs = words[0];
            sizes[..length as usize].copy_from_slice(planes);
            words = rest;
            transpose(&mut sizes);
        }
        let mut level = 0_i32;
        field.extend(sizes.iter().enumerate().map(|(i, &size)| {
            let sign = -((signs >> i & 1) as i32);
            level = level.wrapping_add((size as i32 ^ sign) - sign);
            level as f32 * step
        }));
    }
}

/// Bit `k` of word `i` becomes bit `i` of word `k`.
fn transpose(rows: &mut [u32; BLOCK]) {
    for (mask, width) in MASKS.into_iter().zip([1, 2, 4, 8, 16]) {
        for start in (0..BLOCK).step_by(2 * width) {
            for k in start..start + width {
                let change = (rows[k] >> width ^ rows[k + width]) & mask;
                rows[k] ^= change << width;
                rows[k + width] ^= change;
            }
        }
    }
}
