import ConfigurationPages
import Foundation
import GateVocabulary
import GatewayPipeline
import UnixSocketEndpoint
import UnixSockets

/// The configured sockets in the order the endpoint numbers them, and who may speak as whom on each.
struct SocketPlan {
    let attestation: PeerAttestation
    private let sockets: [(source: SocketSource, caller: CallerName?)]

    /// - Parameter environment: Where a service manager says which sockets it has handed over.
    /// - Throws: ``ConfigurationDiagnostics`` for a configured socket that was not handed over, and for one handed over that the
    ///   configuration does not name;
    ///   `PeerAttestation.TableError` for a table that gives one peer two caller names.
    init(_ configuration: GatewayConfiguration, environment: [String: String]) throws {
        let inherited = try InheritedSockets(environment: environment, processID: getpid())
        var unclaimed = Set(inherited.sockets.map(\.descriptor))
        var diagnostics: [ConfigurationDiagnostic] = []
        var sockets: [(source: SocketSource, caller: CallerName?)] = []
        var bindings = configuration.callers.map {
            PeerAttestation.Binding(caller: $0.caller, userIDs: $0.userIDs, groupIDs: $0.groupIDs)
        }
        var bound: [Int: CallerName] = [:]
        for listener in configuration.listeners {
            let source: SocketSource
            switch listener.source {
            case .path(let path):
                source = .path(
                    SocketFile(
                        path: path, directoryMode: listener.directoryMode, socketMode: listener.mode,
                        ownerID: listener.ownerID, groupID: listener.groupID))
            case .systemd(let name):
                let descriptors = inherited.descriptors(named: name)
                guard descriptors.count == 1, let descriptor = descriptors.first else {
                    diagnostics.append(
                        ConfigurationDiagnostic(
                            "the service manager handed over \(descriptors.count) sockets named `\(name)`, and one is needed",
                            at: "listener `systemd: \(name)`",
                            hint: "set `FileDescriptorName=\(name)` in one socket unit of this service"))
                    continue
                }
                unclaimed.remove(descriptor)
                source = .inherited(descriptor: descriptor)
            }
            if let caller = listener.caller {
                bound[sockets.count] = caller
                bindings.append(
                    PeerAttestation.Binding(
                        caller: caller, userIDs: listener.userIDs, listener: sockets.count))
            }
            sockets.append((source, listener.caller))
        }
        for socket in inherited.sockets where unclaimed.contains(socket.descriptor) {
            diagnostics.append(
                ConfigurationDiagnostic(
                    "the service manager handed over a socket named `\(socket.name)` that no listener names",
                    hint: "add a listener with `systemd: \(socket.name)`, or remove the socket unit"))
        }
        guard diagnostics.isEmpty else { throw ConfigurationDiagnostics(diagnostics) }
        attestation = try PeerAttestation(
            bindings: bindings, boundListeners: bound, acceptsRoot: configuration.isDevelopment,
            overflow: UnixAccounts.overflowIDs)
        self.sockets = sockets
    }

    var listeners: [ListenerConfiguration] {
        sockets.map { ListenerConfiguration(source: $0.source, boundCaller: $0.caller) }
    }
}
