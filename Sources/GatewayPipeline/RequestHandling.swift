package import GateVocabulary
package import WireProtocol

/// The kernel's record of the process that connected, as it was at `connect` (`SO_PEERCRED`, `SO_PEERGROUPS`).
///
/// Measured: the credentials travel with a passed descriptor, and a uid that has no mapping in our user namespace
/// reads 65534. So a connection is a capability: ``processID`` is evidence for the trail, never authority.
package struct PeerCredentials: Hashable, Sendable {
    package var userID: UInt32
    package var groupID: UInt32
    package var processID: Int32
    /// Supplementary groups, ascending.
    package var supplementaryGroups: [UInt32]

    package init(userID: UInt32, groupID: UInt32, processID: Int32, supplementaryGroups: [UInt32]) {
        self.userID = userID
        self.groupID = groupID
        self.processID = processID
        self.supplementaryGroups = supplementaryGroups
    }
}

/// One end of a connection: its credentials, and the listener it came through.
package struct Peer: Hashable, Sendable {
    package var credentials: PeerCredentials
    /// Set when the listener is bound to one caller; attestation still checks the uid.
    package var boundCaller: CallerName?
    /// The listener's position in the configuration; grants may differ by listener.
    package var listener: Int

    package init(credentials: PeerCredentials, boundCaller: CallerName?, listener: Int) {
        self.credentials = credentials
        self.boundCaller = boundCaller
        self.listener = listener
    }
}

/// One complete HTTP request, or one line of a stream.
package struct WireRequest: Sendable {
    /// How a request came, which decides how its answer is framed.
    package enum Kind: Sendable, Hashable {
        case single
        /// One line of `POST /v1/sends/stream` or `POST /v1/import`; its answer carries `status` in the body.
        case streamLine
    }
    package var kind: Kind
    /// Upper-case, e.g. `POST`.
    package var method: String
    /// Path and query exactly as sent, still percent-encoded.
    package var target: String
    /// Lower-case name, value; at most 16 KiB together (RFC 9112 section 5).
    package var headers: [(name: String, value: String)]
    /// At most 64 KiB.
    package var body: [UInt8]

    package init(
        kind: Kind, method: String, target: String, headers: [(name: String, value: String)], body: [UInt8]
    ) {
        self.kind = kind
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }
}

/// Handles everything that arrives at the endpoint.
///
/// - Concurrency: called on the connection's event loop and must not block it. `reply` is called exactly once, on any
///   thread, possibly before `handle` returns.
/// - Ordering: several requests of one connection may be under way at once; the endpoint writes the answers in the
///   order the requests came.
/// - Durability: an answer given to `reply` is already true; the endpoint may lose it, never change it.
package protocol RequestHandler: Sendable {
    func handle(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void)

    /// Whether a peer may use the reserved share of the endpoint's bounds, on whichever listener it came. Asked once
    /// for each connection, on its event loop.
    func mayUseReserve(_ peer: Peer) -> Bool
}
