use alloc::format;
use core::net::{IpAddr, Ipv6Addr};

use crate::error::ConfigError;

/// A client's address as a key: the part of an IP address that identifies one client.
///
/// An IPv6 subscriber gets a whole network, commonly a /64 (RFC 6177, RFC 7934), and may use any
/// address in it; an IPv4 address may be written as an IPv6 one (`::ffff:192.0.2.1`, RFC 4291,
/// 2.5.5.2). With whole addresses as keys, one client would count as many.
///
/// # Examples
///
/// ```
/// use core::net::IpAddr;
/// use ringgate::keyed::ClientAddress;
///
/// # fn main() -> Result<(), core::net::AddrParseError> {
/// let one: IpAddr = "2001:db8:1:2::1".parse()?;
/// let other: IpAddr = "2001:db8:1:2:ffff::7".parse()?;
/// assert_eq!(ClientAddress::new(one), ClientAddress::new(other));
///
/// let mapped: IpAddr = "::ffff:192.0.2.1".parse()?;
/// let plain: IpAddr = "192.0.2.1".parse()?;
/// assert_eq!(ClientAddress::new(mapped), ClientAddress::new(plain));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientAddress(IpAddr);

impl ClientAddress {
    /// The default number of bits of an IPv6 address that identify one client.
    pub const DEFAULT_PREFIX: u8 = 64;

    /// Returns the client at `address`, by all bits of an IPv4 address or the first 64 bits of an IPv6 one.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        Self::masked(address, Self::DEFAULT_PREFIX)
    }

    /// Returns the client at `address`, by all bits of an IPv4 address or the first `prefix` bits of an IPv6
    /// one.
    ///
    /// # Errors
    ///
    /// `prefix`: not 1 to 128.
    pub fn with_prefix(address: IpAddr, prefix: u8) -> Result<Self, ConfigError> {
        if prefix == 0 || prefix > 128 {
            return Err(ConfigError::new(
                "prefix",
                format!("{prefix}"),
                "1 to 128 bits of an IPv6 address",
            ));
        }
        Ok(Self::masked(address, prefix))
    }

    /// Returns the address of the client. The bits of an IPv6 address after the prefix are zero.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.0
    }

    /// Returns the client at `address`, as `with_prefix` does, for a prefix that is known to be 1 to 128.
    #[inline]
    pub(crate) fn masked(address: IpAddr, prefix: u8) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let kept = u128::MAX << (128 - u32::from(prefix));
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self::new(address)
    }
}
