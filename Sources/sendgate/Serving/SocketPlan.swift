import ConfigurationPages
import Foundation
import GateVocabulary
import GatewayPipeline
import PublicPages
import UnixSocketEndpoint
import UnixSockets

/// The configured sockets in the order the endpoint numbers them, and who may speak as whom on each.
struct SocketPlan {
    let attestation: PeerAttestation
    /// What becomes of the sends over each.
    private(set) var modes: [ListenerMode] = []
    /// What a service manager handed over for the pages.
    let pageDescriptor: Int32?
    private let sockets: [(source: SocketSource, caller: CallerName?)]

    /// - Parameters:
    ///   - environment: Where a service manager says which sockets it has handed over.
    ///   - isListening: `false` for a gateway that is stopped: who may speak as whom is known without any socket.
    /// - Throws: ``ConfigurationDiagnostics`` for a configured socket that was not handed over, and for one handed over that the
    ///   configuration does not name;
    ///   `PeerAttestation.TableError` for a table that gives one peer two caller names.
    init(
        _ configuration: GatewayConfiguration, environment: [String: String], isListening: Bool = true
    ) throws {
        let inherited =
            isListening ? try InheritedSockets(environment: environment, processID: getpid()) : .none
        var unclaimed = Set(inherited.sockets.map(\.descriptor))
        var diagnostics: [ConfigurationDiagnostic] = []
        var sockets: [(source: SocketSource, caller: CallerName?)] = []
        var bindings = configuration.callers.map {
            PeerAttestation.Binding(caller: $0.caller, userIDs: $0.userIDs, groupIDs: $0.groupIDs)
        }
        var bound: [Int: CallerName] = [:]
        /// `place` is what asks for the socket.
        func take(_ name: String, for place: String) -> Int32? {
            let descriptors = inherited.descriptors(named: name)
            guard descriptors.count == 1, let descriptor = descriptors.first else {
                diagnostics.append(
                    ConfigurationDiagnostic(
                        "the service manager handed over \(descriptors.count) sockets named `\(name)`, and one is needed",
                        at: place,
                        hint: "set `FileDescriptorName=\(name)` in one socket unit of this service"))
                return nil
            }
            guard unclaimed.remove(descriptor) != nil else {
                diagnostics.append(
                    ConfigurationDiagnostic(
                        "the socket `\(name)` of the service manager is asked for twice", at: place,
                        hint: "give each its own socket unit"))
                return nil
            }
            return descriptor
        }
        for listener in configuration.listeners {
            let source: SocketSource
            switch listener.source {
            case .path(let path):
                source = .path(
                    SocketFile(
                        path: path, directoryMode: listener.directoryMode, socketMode: listener.mode,
                        ownerID: listener.ownerID, groupID: listener.groupID))
            case .systemd(let name):
                guard isListening else {
                    source = .inherited(descriptor: -1)
                    break
                }
                guard let descriptor = take(name, for: "listener `systemd: \(name)`") else { continue }
                source = .inherited(descriptor: descriptor)
            }
            if let caller = listener.caller {
                bound[sockets.count] = caller
                bindings.append(
                    PeerAttestation.Binding(
                        caller: caller, userIDs: listener.userIDs, listener: sockets.count))
            }
            sockets.append((source, listener.caller))
            modes.append(listener.sends)
        }
        if isListening, case .systemd(let name)? = configuration.publicListen {
            pageDescriptor = take(name, for: "`public_listen`")
        } else {
            pageDescriptor = nil
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
