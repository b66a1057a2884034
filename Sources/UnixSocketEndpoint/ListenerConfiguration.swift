package import GateVocabulary
package import UnixSockets

/// One socket to listen on, and what the kernel shall enforce on its file.
package struct ListenerConfiguration: Hashable, Sendable {
    package var source: SocketSource
    /// Set when everything that arrives here speaks for one caller; attestation still checks the uid.
    package var boundCaller: CallerName?

    package init(source: SocketSource, boundCaller: CallerName? = nil) {
        self.source = source
        self.boundCaller = boundCaller
    }
}
