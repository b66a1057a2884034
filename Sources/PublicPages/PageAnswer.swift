/// What was asked for, all of it read.
struct PageRequest: Sendable {
    var method: String
    var target: String
    var contentType: String?
    var acceptLanguage: String?
    var body: [UInt8] = []
}

/// What is answered: a status, the headers that differ, and a body that a `HEAD` is spared.
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

    /// On every answer, so that none can be framed, kept, found, sniffed or made to load anything of others; and a page
    /// that somebody goes on from does not tell where they were.
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
