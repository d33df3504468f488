//! The life of a machine: what it can be asked while it runs, and what is left of it then.

use dflow_cli::limit;
use dflow_ir::image::Image;
use dflow_runtime::config::Limit;
use dflow_runtime::doing::Doing;
use dflow_runtime::host::{Failure, HostError, Request, Session, Ticket};
use dflow_runtime::machine::{Machine as Mesh, Running, Stopped};

/// What sets the limits of a `Machine` of the package.
pub(crate) const ARGUMENTS: limit::Settings =
    limit::Settings { cycles: "max_cycles", memory: Some("max_memory"), time: "seconds" };
/// Likewise of an `SdkRuntime`.
pub(crate) const ENVIRONMENT: limit::Settings =
    limit::Settings { cycles: "DFLOW_MAX_CYCLES", memory: None, time: "DFLOW_TIMEOUT" };

/// A machine and what became of it.
pub(crate) struct Inner {
    pub(crate) life: Life,
    /// What sets its limits, and whether there is one of memory that the user chose.
    pub(crate) limits: (limit::Settings, bool),
    /// Why the run ended before its time.
    pub(crate) ended: Option<String>,
    /// A limit ended it: PEs may have had things to do.
    pub(crate) cut: bool,
    /// It still worked when it was stopped.
    pub(crate) busy: bool,
    /// Of the requests made, by number.
    pub(crate) tickets: Vec<Ticket>,
}

/// Where a machine is in its life.
pub(crate) enum Life {
    Running(Box<Session<Mesh<Running>>>),
    Stopped {
        mesh: Box<Mesh<Stopped>>,
        cycles: u64,
    },
    /// Between two of the above.
    Gone,
}

/// What a call can come to.
pub(crate) enum Fault {
    Failure(Failure),
    Text(String),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        Fault::Failure(failure)
    }
}

impl From<HostError> for Fault {
    fn from(error: HostError) -> Fault {
        Fault::Failure(error.into())
    }
}

impl Inner {
    pub(crate) fn session(&mut self) -> Result<&mut Session<Mesh<Running>>, Fault> {
        if let Some(why) = &self.ended {
            return Err(Fault::Text(format!("the run has ended already: {why}")));
        }
        match &mut self.life {
            Life::Running(session) => Ok(session),
            Life::Stopped { .. } | Life::Gone => Err(Fault::Text("the machine is stopped".into())),
        }
    }

    pub(crate) fn mesh(&mut self) -> Result<&mut Mesh<Stopped>, Fault> {
        match &mut self.life {
            Life::Stopped { mesh, .. } => Ok(mesh),
            Life::Running(_) | Life::Gone => {
                Err(Fault::Text("memory can be read when the machine is stopped".into()))
            }
        }
    }

    pub(crate) fn cycles(&self) -> u64 {
        match &self.life {
            Life::Running(session) => session.cycles(),
            Life::Stopped { cycles, .. } => *cycles,
            Life::Gone => 0,
        }
    }

    /// Makes a request; gives its number.
    pub(crate) fn submit(&mut self, request: Request) -> Result<usize, Fault> {
        let ticket = self.session()?.submit(request)?;
        self.tickets.push(ticket);
        Ok(self.tickets.len() - 1)
    }

    /// What was odd so far: lines.
    pub(crate) fn odd(&self, files: &[String]) -> String {
        let Life::Running(session) = &self.life else { return String::new() };
        let remarks = session.mesh().account().remarks;
        remarks.iter().map(|remark| format!("\n  warning: {}", remark.line(files))).collect()
    }

    /// Remembers what ends a run; gives what else is to be told of it.
    pub(crate) fn note(&mut self, failure: &Failure, image: &Image) -> String {
        let odd = self.odd(&image.files);
        let (text, more) = match failure {
            Failure::Host { .. } | Failure::HostTrap(_) => return odd,
            Failure::Limit(limit) => {
                self.cut = true;
                let text = self.reached(image, *limit);
                let doing = self.doing().unwrap_or_default();
                let told = limit::with_doing(&text, &doing, &image.files);
                (text, format!("{told}{odd}"))
            }
            Failure::Trap(_) | Failure::Deadlock(_) | Failure::Broken(_) => {
                (failure.to_string(), odd)
            }
        };
        let first = text.lines().next().unwrap_or_default();
        self.ended.get_or_insert_with(|| first.to_owned());
        more
    }

    /// Which limit ended the run, and what sets it.
    pub(crate) fn reached(&self, image: &Image, limit: Limit) -> String {
        let Life::Running(session) = &self.life else { return limit.to_string() };
        let (by, own_memory) = self.limits;
        let set = limit::Set { limits: session.limits(), by, own_memory };
        set.reached(image, limit, &session.mesh().doing())
    }

    /// What the PEs are doing.
    pub(crate) fn doing(&self) -> Option<Doing> {
        match &self.life {
            Life::Running(session) => Some(session.mesh().doing()),
            Life::Stopped { mesh, .. } => Some(mesh.doing()),
            Life::Gone => None,
        }
    }

    /// Ends the life of the machine. Unless it has failed it comes to rest first, for what the
    /// program does after its last word to the host.
    pub(crate) fn stop(&mut self) -> Result<(), Fault> {
        let rested = match (&self.ended, &mut self.life) {
            (None, Life::Running(session)) => {
                let rested = session.flush().and_then(|()| session.rest());
                rested.and_then(|()| session.come_to_rest())
            }
            (Some(_), _) | (None, Life::Stopped { .. } | Life::Gone) => Ok(false),
        };
        self.busy |= rested.as_ref().is_ok_and(|&busy| busy);
        match std::mem::replace(&mut self.life, Life::Gone) {
            Life::Running(session) => {
                let cycles = session.cycles();
                let mesh = Box::new(session.into_mesh().stop());
                self.life = Life::Stopped { mesh, cycles };
            }
            life @ (Life::Stopped { .. } | Life::Gone) => self.life = life,
        }
        rested?;
        Ok(())
    }
}
