/// Where the server is, who it must be, and every bound of the client. Times are milliseconds.
package struct UnixHTTPClientConfiguration: Hashable, Sendable {
    /// Absolute, at most 107 bytes (unix(7)).
    package var path: String
    /// The user ids the listening process may have had, of which the overflow uid never counts; `nil` trusts any process that
    /// could bind the path.
    ///
    /// The kernel reports the credentials of the process that called `listen`, so under systemd's socket
    /// activation that is the service manager (uid 0), not the service.
    package var serverUserIDs: Set<UInt32>?
    package var connectMilliseconds: Int64 = 2_000
    /// Body of one answer, and one line of a stream.
    package var answerByteCountMax = 1024 * 1024
    /// Head and all other framing of one answer, interim answers before it included. An answer in chunks may have so much in one
    /// place, and eight more for each byte of its body.
    package var headerByteCountMax = 16 * 1024
    package var headerFieldCountMax = 100
    /// Requests written and not answered on one connection.
    package var pipelinedRequestsMax = 32
    /// Requests that wait for a place among those.
    package var queuedRequestsMax = 4_096
    /// Stream answers kept for a reader that is slower than the server, before reading stops.
    package var streamAnswersBufferedMax = 256

    package init(path: String, serverUserIDs: Set<UInt32>? = nil) {
        self.path = path
        self.serverUserIDs = serverUserIDs
    }
}

/// One complete answer.
package struct UnixHTTPResponse: Sendable {
    package var status: Int
    /// Names as the server spelled them.
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(status: Int, headers: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The first field with this name; header names ignore case.
    package func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return headers.first { $0.name.lowercased() == wanted }?.value
    }
}
