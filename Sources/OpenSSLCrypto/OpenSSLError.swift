import COpenSSL

/// What OpenSSL, or the shape of what it was given, made impossible.
///
/// No case carries key material or plaintext: the texts are OpenSSL's own reason strings.
package enum OpenSSLError: Error, Equatable {
    /// OpenSSL refused `operation`; `reason` is the oldest entry of its error queue on this thread.
    case failed(operation: String, reason: String)
    /// `what` must be exactly `expected` bytes long.
    case wrongByteCount(what: String, expected: Int, actual: Int)
    /// The tag does not match: another key, another `aad`, or changed bytes. Nothing was decrypted.
    case authenticationFailed
    /// The bytes are no public key of the curve that peers may use; `why` names the rule it breaks.
    case unacceptablePublicKey(why: String)

    /// Takes the reason off this thread's error queue and empties the queue, so that the next failure
    /// reports its own reason.
    static func lastFailure(of operation: String) -> OpenSSLError {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0, let text = ERR_reason_error_string(code) else {
            return .failed(operation: operation, reason: "no reason given by OpenSSL")
        }
        return .failed(operation: operation, reason: String(cString: text))
    }
}

extension OpenSSLError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .failed(let operation, let reason): "cannot \(operation): \(reason)"
        case .wrongByteCount(let what, let expected, let actual):
            "\(what) must be \(expected) bytes, this one has \(actual)"
        case .authenticationFailed: "the sealed bytes do not belong to this key and context"
        case .unacceptablePublicKey(let why): "the public key is not acceptable: \(why)"
        }
    }
}
