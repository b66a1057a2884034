package import CanonicalJSON

/// One HTTP request to a provider.
package struct ProviderRequest: Sendable {
    package var method = "POST"
    /// With the query, percent-encoded by the caller.
    package var path: String
    /// Names in lower case. Host and length are the connection's.
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    /// Longest time from the call to the whole answer.
    package var timeoutMilliseconds: Int64
}

/// A provider's answer, read whole.
package struct ProviderAnswer: Sendable {
    /// Longest body of an answer in bytes. Apple's and Google's have some hundred; 300 receipts of Expo about 60,000.
    package static let bodyBytesMax = 65_536

    package var status: Int
    /// Names in lower case.
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

    /// The body as one JSON object; `nil` when it is anything else.
    package var json: JSONObject? {
        guard case .success(.object(let object)) = Result(catching: { try CanonicalJSON.read(body) }) else {
            return nil
        }
        return object
    }
}

/// Why a request has no answer. The words are for logs and reasons: they name no path, header or body.
package enum ExchangeFault: Error, Hashable, CustomStringConvertible {
    /// No byte of the request was taken by the provider, so it may go again at once.
    case notWritten(String)
    /// As ``notWritten(_:)``, and the next request will fare alike until somebody changes something: the provider's name does not resolve,
    /// or its certificate is not trusted.
    case unusable(String)
    /// The request was written and its answer is lost: the provider may have acted on it.
    case unanswered(String)

    package var why: String {
        switch self {
        case .notWritten(let why), .unusable(let why), .unanswered(let why): why
        }
    }

    package var description: String { why }
}
