use crate::receipt::Receipt;

/// The result of a wait for permits: the receipt, or nothing.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait Granted {
    fn from_receipt(receipt: Receipt) -> Self;
}

impl Granted for Receipt {
    fn from_receipt(receipt: Receipt) -> Self {
        receipt
    }
}

impl Granted for () {
    fn from_receipt(_: Receipt) -> Self {}
}
