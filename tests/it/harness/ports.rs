//! Free ports for brokers and for delayd's HTTP endpoint; called by the rest of the harness.
//! A reservation holds the UDP port of the same number, so that two test processes never get the same one.
//! It must stay below the range from which the system takes ports for outgoing connections.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 17_000;
const COUNT: u16 = 14_000;

/// A TCP port that stays ours while this value lives.
#[derive(Debug)]
pub struct Port {
    pub number: u16,
    _held: UdpSocket,
}

impl Port {
    pub fn reserve() -> Port {
        (0..COUNT)
            .find_map(|_| try_reserve(next()))
            .expect("no free port between 17000 and 31000")
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

fn next() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() as u16 % COUNT;
    FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT
}

fn try_reserve(number: u16) -> Option<Port> {
    let held = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
    Some(Port {
        number,
        _held: held,
    })
}
