import GateVocabulary

/// Every bound on what crosses the socket, with its unit and where it comes from. The endpoint, the
/// parser and the OpenAPI document read the same numbers.
package enum WireLimits {
    // MARK: Requests

    /// Bytes of one request body, and of one line of a stream.
    package static let bodyByteCountMax = 65_536
    /// Bytes of the header section of one request, request line included.
    package static let headerByteCountMax = 16_384
    /// Bytes of the request target. Four ids of 128 bytes, all percent-encoded, and a query fit.
    package static let targetByteCountMax = 4_096
    /// Lines of one stream sent with `Content-Length`.
    package static let batchLineCountMax = 10_000
    /// Bytes of one stream sent with `Content-Length`: 16 MiB.
    package static let batchByteCountMax = 16_777_216

    // MARK: Numbers

    /// Members of `params`, and of any object or array inside it.
    package static let paramCountMax = 64
    /// Arrays and objects inside one another within `params`; money needs one.
    package static let paramDepthMax = 4

    /// Seconds a send may be worth something.
    package static let ttlSecondsMax = SendRequest.ttlSecondsMax
    /// Registered devices of one recipient; the same for addresses.
    package static let destinationCountMax = 20
    /// Events in one answer of `GET /v1/events`, and how many when the caller does not say.
    package static let eventCountMax: Int64 = 1_000
    package static let eventCountDefault: Int64 = 100
    /// Decisions in one answer of `GET …/decisions` and `GET /v1/recipients/{user}`, about 1 KB each, and how many
    /// `…/decisions` gives when the caller does not say.
    package static let decisionCountMax: Int64 = 1_000
    package static let decisionCountDefault: Int64 = 20
    /// People looked at for one answer of `GET /v1/drift/findings`; with twenty devices each, and all that can be found of
    /// them, an answer stays below a few megabytes, and with what people have, below 100 KB.
    package static let driftPersonCountMax: Int64 = 500

    // MARK: Answers

    /// Violations listed in one problem document; how many more there are is said in its detail. Keeps
    /// the answer to a hostile body smaller than the body.
    package static let violationCountMax = 100
}
