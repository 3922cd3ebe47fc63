pub(crate) mod networks;
mod transition;

use alloc::format;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::ConfigError;

/// A client's address as a key: the part of an IP address that identifies one client.
///
/// An IPv6 subscriber gets a whole network, commonly a /64 (RFC 6177, RFC 7934), and may use any
/// address in it. With whole addresses as keys, one client would count as many.
///
/// | address | client |
/// |---|---|
/// | IPv4 | the address, or its first bits if a shorter prefix is set |
/// | IPv6 | the first 64 bits, or those of another prefix |
/// | IPv4-mapped `::ffff:192.0.2.1`, IPv4-translated `::ffff:0:192.0.2.1` (RFC 4291, RFC 7915) | that of the embedded IPv4 address |
/// | NAT64 `64:ff9b::192.0.2.1`, and in `64:ff9b:1::/48` (RFC 6052, RFC 8215) | that of the embedded IPv4 address |
/// | 6to4 `2002:c000:201::1`, Teredo in `2001::/32` (RFC 3056, RFC 4380) | that of the embedded IPv4 address |
/// | link-local `fe80::1`, loopback `::1` | the whole address, with any prefix |
///
/// A translator of `64:ff9b:1::/48` may write the IPv4 address at several places. It is read from bits 48 to 63 and 72 to 87 if the
/// 40 bits after them are zero, and from the last 32 bits if one of the last 24 is set. Any other address of this network is a client
/// of its own, with all its bits.
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
/// let plain: IpAddr = "192.0.2.1".parse()?;
/// for embedded in ["::ffff:192.0.2.1", "64:ff9b::192.0.2.1"] {
///     assert_eq!(ClientAddress::new(embedded.parse()?), ClientAddress::new(plain));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientAddress(IpAddr);

/// The numbers of leading bits that identify a client: 1 to 32 of an IPv4 address, 1 to 128 of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    ipv4: u8,
    ipv6: u8,
}

impl Prefixes {
    pub(crate) const DEFAULT: Self = Self { ipv4: 32, ipv6: 64 };

    /// Replaces the number of bits of an IPv4 address.
    pub(crate) fn with_ipv4(self, bits: u8) -> Result<Self, ConfigError> {
        match bits {
            1..=32 => Ok(Self { ipv4: bits, ..self }),
            _ => Err(ConfigError::new(
                "ipv4_prefix",
                format!("{bits}"),
                "1 to 32 bits of an IPv4 address",
            )),
        }
    }

    /// Replaces the number of bits of an IPv6 address.
    pub(crate) fn with_ipv6(self, bits: u8) -> Result<Self, ConfigError> {
        match bits {
            1..=128 => Ok(Self { ipv6: bits, ..self }),
            _ => Err(ConfigError::new(
                "prefix",
                format!("{bits}"),
                "1 to 128 bits of an IPv6 address",
            )),
        }
    }

    pub(crate) const fn ipv4(self) -> u8 {
        self.ipv4
    }

    pub(crate) const fn ipv6(self) -> u8 {
        self.ipv6
    }
}

impl ClientAddress {
    /// Returns the client at `address`, by all bits of an IPv4 address or the first 64 bits of an IPv6 one.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        Self::masked(address, Prefixes::DEFAULT)
    }

    /// Returns the client at `address`, by the first `ipv4` bits of an IPv4 address or the first `ipv6` bits of an IPv6 one.
    ///
    /// # Errors
    ///
    /// `ipv4_prefix`: `ipv4` is not 1 to 32. `prefix`: `ipv6` is not 1 to 128.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::net::IpAddr;
    /// use ringgate::keyed::ClientAddress;
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let client = ClientAddress::with_prefixes("192.0.2.77".parse()?, 24, 56)?;
    /// assert_eq!(client.address(), "192.0.2.0".parse::<IpAddr>()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_prefixes(address: IpAddr, ipv4: u8, ipv6: u8) -> Result<Self, ConfigError> {
        let prefixes = Prefixes::DEFAULT.with_ipv4(ipv4)?.with_ipv6(ipv6)?;
        Ok(Self::masked(address, prefixes))
    }

    /// Returns the address of the client. The bits after the prefix are zero.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.0
    }

    /// Returns the client at `address` by these prefixes.
    #[inline]
    pub(crate) fn masked(address: IpAddr, prefixes: Prefixes) -> Self {
        Self(match transition::embedded(address) {
            IpAddr::V4(address) => {
                let kept = u32::MAX << (32 - u32::from(prefixes.ipv4));
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & kept))
            }
            IpAddr::V6(address) if transition::is_one_client(address) => IpAddr::V6(address),
            IpAddr::V6(address) => {
                let kept = u128::MAX << (128 - u32::from(prefixes.ipv6));
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
            }
        })
    }

    /// Returns the address at which the client is reached: the embedded IPv4 address, or `address` itself.
    pub(crate) fn unmasked(address: IpAddr) -> IpAddr {
        transition::embedded(address)
    }
}
