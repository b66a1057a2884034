import CompliancePolicy
import ConfigurationPages
import Foundation
import GateVocabulary
import GatewayPipeline
import PublicPages
import Testing
import UnixSocketEndpoint
import UnixSockets

@testable import sendgate

@Suite struct SocketPlanTests {
    private static func configuration(
        listeners: [GatewayConfiguration.Listener], callers: [GatewayConfiguration.CallerBinding] = [],
        developmentCaller: CallerName? = nil
    ) -> GatewayConfiguration {
        GatewayConfiguration(
            stateDirectory: "/s", trailDirectory: "/t", policiesDirectory: "/p", keysDirectory: "/k",
            rootKeyPath: nil, trailOrigin: "test", listeners: listeners, callers: callers,
            hop: .file(path: "/o"), unsubscribeURL: "https://example.com/",
            developmentCaller: developmentCaller, sealerCount: 1)
    }

    private static func peer(_ user: UInt32, listener: Int, bound: String? = nil) -> Peer {
        Peer(
            credentials: PeerCredentials(userID: user, groupID: 7, processID: 1, supplementaryGroups: []),
            boundCaller: bound.map(CallerName.init), listener: listener)
    }

    @Test func `a bound socket speaks for its caller only, and only for its users`() throws {
        let plan = try SocketPlan(
            Self.configuration(
                listeners: [
                    .init(source: .path("/a.sock")),
                    .init(source: .path("/b.sock"), caller: CallerName("marketing"), userIDs: [1001]),
                ], callers: [.init(caller: CallerName("payments"), userIDs: [1001])]), environment: [:])
        #expect(plan.attestation.caller(of: Self.peer(1001, listener: 0)) == CallerName("payments"))
        #expect(
            plan.attestation.caller(of: Self.peer(1001, listener: 1, bound: "marketing"))
                == CallerName("marketing"))
        #expect(plan.attestation.caller(of: Self.peer(1002, listener: 1, bound: "marketing")) == nil)
    }

    @Test func `root as a caller is refused, but for development`() throws {
        let binding = GatewayConfiguration.CallerBinding(caller: CallerName("payments"), userIDs: [0])
        let listeners = [GatewayConfiguration.Listener(source: .path("/a.sock"))]
        #expect(throws: PeerAttestation.TableError.rootUser(caller: CallerName("payments"))) {
            try SocketPlan(Self.configuration(listeners: listeners, callers: [binding]), environment: [:])
        }
        _ = try SocketPlan(
            Self.configuration(
                listeners: listeners, callers: [binding], developmentCaller: CallerName("dev")),
            environment: [:])
    }

    @Test func `a bound socket without users and the user who stands for everybody are refused`() {
        #expect(throws: PeerAttestation.TableError.self) {
            try SocketPlan(
                Self.configuration(listeners: [.init(source: .path("/a.sock"), caller: CallerName("x"))]),
                environment: [:])
        }
        #expect(throws: PeerAttestation.TableError.overflowIdentifier(caller: CallerName("x"))) {
            try SocketPlan(
                Self.configuration(
                    listeners: [.init(source: .path("/a.sock"))],
                    callers: [.init(caller: CallerName("x"), userIDs: [65534])]), environment: [:])
        }
    }

    private static func handedOver(_ names: [String]) -> [String: String] {
        [
            "LISTEN_PID": "\(getpid())", "LISTEN_FDS": "\(names.count)",
            "LISTEN_FDNAMES": names.joined(separator: ":"),
        ]
    }

    @Test func `sockets of a service manager are found by their names`() throws {
        let plan = try SocketPlan(
            Self.configuration(
                listeners: [
                    .init(source: .systemd(name: "security"), caller: CallerName("security"), userIDs: [9]),
                    .init(source: .systemd(name: "gate")),
                ]), environment: Self.handedOver(["gate", "security"]))
        #expect(
            plan.listeners.map(\.source) == [.inherited(descriptor: 4), .inherited(descriptor: 3)])
    }

    @Test func `the pages' socket is the one of its name, and one socket has one use`() throws {
        var configuration = Self.configuration(listeners: [.init(source: .systemd(name: "gate"))])
        configuration.publicListen = .systemd(name: "pages")
        let plan = try SocketPlan(configuration, environment: Self.handedOver(["pages", "gate"]))
        #expect(plan.pageDescriptor == 3 && plan.listeners.map(\.source) == [.inherited(descriptor: 4)])
        #expect(throws: ConfigurationDiagnostics.self) {
            try SocketPlan(configuration, environment: Self.handedOver(["gate"]))
        }
        configuration.publicListen = .systemd(name: "gate")
        #expect(throws: ConfigurationDiagnostics.self) {
            try SocketPlan(configuration, environment: Self.handedOver(["gate"]))
        }
    }

    /// What a command of a stopped gateway needs: no service manager started it.
    @Test func `who may speak as whom is known without any socket`() throws {
        var configuration = Self.configuration(
            listeners: [.init(source: .systemd(name: "gate"))],
            callers: [.init(caller: CallerName("payments"), userIDs: [1001])])
        configuration.publicListen = .systemd(name: "pages")
        let plan = try SocketPlan(configuration, environment: [:], isListening: false)
        #expect(plan.attestation.caller(of: Self.peer(1001, listener: 0)) == CallerName("payments"))
        #expect(plan.pageDescriptor == nil)
    }

    @Test(arguments: [[String](), ["other"], ["gate", "gate"], ["gate", "more"]])
    func `a socket that is missing, doubled or asked for by nobody stops the start`(names: [String]) {
        #expect(throws: ConfigurationDiagnostics.self) {
            try SocketPlan(
                Self.configuration(listeners: [.init(source: .systemd(name: "gate"))]),
                environment: Self.handedOver(names))
        }
    }
}
