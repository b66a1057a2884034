/// A payload that cannot be composed: the bundle or a param asks for what cannot be written.
///
/// The gate then knows no size and refuses the send (`fact_missing`); nothing half-composed leaves.
package enum CompositionError: Error, Hashable, Sendable {
    /// Not an ISO 4217 code with a minor unit.
    case unknownCurrency(String)
    /// A counted text without the form every language falls back to.
    case pluralWithoutOther(param: String)
    /// A text of variants, each of which asks for a param that is not there.
    case noVariant
    /// Only push carries a sealed body, and only to a device with a key.
    case sealedWithoutKey
    /// The type is never sent on this channel.
    case formNever
    /// A text of an open push that is longer than 65,535 bytes.
    case tooLongToSign
    /// The envelope or the origin's mark has another length than the one the decision was made on. Both counts are bytes.
    case insertionLength(expected: Int, actual: Int)
    /// An envelope or a mark for a body that has no place for one, or none for a body that has.
    case insertionNotExpected(hasPlace: Bool)
}

extension CompositionError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownCurrency(let code): "`\(code)` is not an ISO 4217 currency with a minor unit"
        case .pluralWithoutOther(let param): "the text counted by `\(param)` has no form `other`"
        case .noVariant: "no variant of the text can do without the params that are not there"
        case .sealedWithoutKey: "a sealed body needs a device and its key"
        case .formNever: "this type is never sent on this channel"
        case .tooLongToSign: "a text of the push is longer than 65,535 bytes"
        case .insertionLength(let expected, let actual):
            "the envelope or signature has \(actual) bytes and the decision was made on \(expected)"
        case .insertionNotExpected(true): "the body has a place for an envelope or a signature and got none"
        case .insertionNotExpected(false): "the body has no place for an envelope or a signature"
        }
    }
}
