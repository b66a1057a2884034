/// A request, read to its end.
struct PageRequest: Sendable {
    var method: String
    var target: String
    var contentType: String?
    var acceptLanguage: String?
    var body: [UInt8] = []
}

/// The answer to a request: a status, the headers that differ, and a body that a `HEAD` is not sent.
struct PageAnswer: Hashable, Sendable {
    var status: Int
    var contentType = "text/html; charset=utf-8"
    /// Besides ``alwaysSent``; names in lower case.
    var headers: [Header] = []
    var body: [UInt8]
    /// Whether only the header is sent; its length stays that of the body.
    var isHeadOnly = false

    struct Header: Hashable, Sendable {
        var name: String
        var value: String
    }

    /// Sent on every answer: no page can be framed, cached, indexed, sniffed or made to load a foreign resource, and
    /// a link that is followed from a page does not send its address on.
    static let alwaysSent: [Header] = [
        Header(name: "cache-control", value: "no-store"),
        Header(
            name: "content-security-policy",
            value:
                "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        ),
        Header(name: "referrer-policy", value: "no-referrer"),
        Header(name: "x-content-type-options", value: "nosniff"),
        Header(name: "x-robots-tag", value: "noindex"),
        Header(name: "cross-origin-opener-policy", value: "same-origin"),
        Header(name: "cross-origin-resource-policy", value: "same-origin"),
    ]
}
