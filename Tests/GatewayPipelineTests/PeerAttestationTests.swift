import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GatewayPipeline
import Testing

@Suite struct PeerAttestationTests {
    static let marketing = CallerName("marketing")
    static let security = CallerName("security")

    func peer(
        user: UInt32, group: UInt32 = 100, groups: [UInt32] = [], bound: CallerName? = nil, listener: Int = 0
    ) -> Peer {
        Peer(
            credentials: PeerCredentials(
                userID: user, groupID: group, processID: 1, supplementaryGroups: groups),
            boundCaller: bound, listener: listener)
    }

    @Test func `a user speaks for the caller it is bound to and for nobody else`() throws {
        let table = try PeerAttestation(
            bindings: [
                .init(caller: Self.marketing, userIDs: [1001]), .init(caller: Self.security, userIDs: [1002]),
            ], boundListeners: [:], acceptsRoot: false)
        #expect(table.caller(of: peer(user: 1001)) == Self.marketing)
        #expect(table.caller(of: peer(user: 1002)) == Self.security)
        #expect(table.caller(of: peer(user: 1003)) == nil)
        #expect(table.caller(of: peer(user: 0)) == nil)
    }

    @Test func `a supplementary group is enough, and a user binding wins over it`() throws {
        let table = try PeerAttestation(
            bindings: [
                .init(caller: Self.marketing, groupIDs: [500]), .init(caller: Self.security, userIDs: [1002]),
            ], boundListeners: [:], acceptsRoot: false)
        #expect(table.caller(of: peer(user: 7, groups: [4, 500])) == Self.marketing)
        #expect(table.caller(of: peer(user: 7, group: 500)) == Self.marketing)
        #expect(table.caller(of: peer(user: 1002, groups: [500])) == Self.security)
    }

    @Test func `a peer in the groups of two callers is neither, and a user's own binding still says who`()
        throws
    {
        let table = try PeerAttestation(
            bindings: [
                .init(caller: Self.marketing, groupIDs: [500, 501]),
                .init(caller: Self.security, userIDs: [1002], groupIDs: [600]),
            ], boundListeners: [:], acceptsRoot: false)
        #expect(table.caller(of: peer(user: 7, group: 500, groups: [600])) == nil)
        #expect(table.caller(of: peer(user: 7, groups: [600, 501])) == nil)
        // Two groups of one caller are one caller.
        #expect(table.caller(of: peer(user: 7, group: 500, groups: [501])) == Self.marketing)
        #expect(table.caller(of: peer(user: 1002, group: 500, groups: [600])) == Self.security)
        // The bindings of a listener and of all of them come together.
        let both = try PeerAttestation(
            bindings: [
                .init(caller: Self.marketing, userIDs: [7]),
                .init(caller: Self.security, userIDs: [7], listener: 1),
            ], boundListeners: [:], acceptsRoot: false)
        #expect(both.caller(of: peer(user: 7)) == Self.marketing)
        #expect(both.caller(of: peer(user: 7, listener: 1)) == nil)
    }

    @Test func `the overflow uid is nobody even when its groups are known`() throws {
        let table = try PeerAttestation(
            bindings: [.init(caller: Self.marketing, groupIDs: [500])], boundListeners: [:],
            acceptsRoot: false)
        #expect(table.caller(of: peer(user: 65534, groups: [500])) == nil)
        #expect(table.caller(of: peer(user: 7, group: 65534)) == nil)
    }

    @Test func `root is nobody by whatever group, on whatever listener`() throws {
        let table = try PeerAttestation(
            bindings: [
                .init(caller: Self.marketing, groupIDs: [500]),
                .init(caller: Self.security, userIDs: [1002], groupIDs: [501], listener: 1),
            ], boundListeners: [1: Self.security], acceptsRoot: false)
        for root in [
            peer(user: 0, group: 500), peer(user: 0, group: 0, groups: [500]),
            peer(user: 0, groups: [4, 500, 501], bound: Self.security, listener: 1),
        ] {
            #expect(table.caller(of: root) == nil)
        }
        // A user keeps its caller in whatever groups it is, and root's group gives it none.
        #expect(table.caller(of: peer(user: 7, group: 0, groups: [0, 500])) == Self.marketing)
        #expect(table.caller(of: peer(user: 7, group: 0, groups: [0])) == nil)
        #expect(
            table.caller(of: peer(user: 1002, group: 0, groups: [0], bound: Self.security, listener: 1))
                == Self.security)
        // Development runs as root.
        let development = try PeerAttestation(
            bindings: [.init(caller: Self.marketing, groupIDs: [0, 500])], boundListeners: [:],
            acceptsRoot: true)
        #expect(development.caller(of: peer(user: 0, group: 500)) == Self.marketing)
        #expect(development.caller(of: peer(user: 7, group: 0)) == Self.marketing)
        #expect(development.caller(of: peer(user: 65534, group: 500)) == nil)
    }

    @Test func `the ids that the machine's kernel gives to strangers are nobody's either`() throws {
        let overflow = PeerAttestation.OverflowIDs(userID: 99_999, groupID: 88_888)
        let table = try PeerAttestation(
            bindings: [.init(caller: Self.marketing, groupIDs: [500])], boundListeners: [:],
            acceptsRoot: false, overflow: overflow)
        for user in [99_999, 65534] as [UInt32] {
            #expect(table.caller(of: peer(user: user, groups: [500])) == nil)
        }
        let bindings: [PeerAttestation.Binding] = [
            .init(caller: Self.marketing, userIDs: [99_999]),
            .init(caller: Self.marketing, groupIDs: [88_888]),
            .init(caller: Self.marketing, userIDs: [65534]), .init(caller: Self.marketing, groupIDs: [65534]),
        ]
        for binding in bindings {
            #expect(throws: PeerAttestation.TableError.overflowIdentifier(caller: Self.marketing)) {
                try PeerAttestation(
                    bindings: [binding], boundListeners: [:], acceptsRoot: false, overflow: overflow)
            }
        }
    }

    @Test func `a bound listener admits only its own caller's uids`() throws {
        let table = try PeerAttestation(
            bindings: [
                .init(caller: Self.marketing, userIDs: [1001], listener: 1),
                .init(caller: Self.security, userIDs: [1001], listener: 2),
            ], boundListeners: [1: Self.marketing, 2: Self.security], acceptsRoot: false)
        #expect(table.caller(of: peer(user: 1001, bound: Self.marketing, listener: 1)) == Self.marketing)
        #expect(table.caller(of: peer(user: 1001, bound: Self.security, listener: 2)) == Self.security)
        #expect(table.caller(of: peer(user: 1002, bound: Self.security, listener: 2)) == nil)
        #expect(table.caller(of: peer(user: 1001, listener: 0)) == nil)
        // Who may use another socket as the same caller may not use this one.
        let elsewhere = try PeerAttestation(
            bindings: [
                .init(caller: Self.marketing, userIDs: [1001]),
                .init(caller: Self.marketing, userIDs: [1002], listener: 1),
                .init(caller: Self.marketing, userIDs: [1003], listener: 2),
            ], boundListeners: [1: Self.marketing], acceptsRoot: false)
        #expect(elsewhere.caller(of: peer(user: 1002, bound: Self.marketing, listener: 1)) == Self.marketing)
        for user in [1001, 1003] as [UInt32] {
            #expect(elsewhere.caller(of: peer(user: user, bound: Self.marketing, listener: 1)) == nil)
        }
    }

    @Test func `ambiguous and dangerous tables are refused`() {
        func problem(_ bindings: [PeerAttestation.Binding], bound: [Int: CallerName] = [:]) -> PeerAttestation
            .TableError?
        {
            do {
                _ = try PeerAttestation(bindings: bindings, boundListeners: bound, acceptsRoot: false)
                return nil
            } catch {
                return error
            }
        }
        #expect(
            problem([.init(caller: Self.marketing, userIDs: [5]), .init(caller: Self.security, userIDs: [5])])
                == .ambiguousUser(userID: 5, first: Self.marketing, second: Self.security))
        #expect(
            problem([
                .init(caller: Self.marketing, groupIDs: [5]), .init(caller: Self.security, groupIDs: [5]),
            ])
                == .ambiguousGroup(groupID: 5, first: Self.marketing, second: Self.security))
        for users in [[0], [0, 1001]] as [Set<UInt32>] {
            #expect(
                problem([.init(caller: Self.marketing, userIDs: users)])
                    == .rootUser(caller: Self.marketing))
        }
        for groups in [[0], [0, 500]] as [Set<UInt32>] {
            #expect(
                problem([.init(caller: Self.marketing, groupIDs: groups)])
                    == .rootGroup(caller: Self.marketing))
        }
        #expect(
            problem([.init(caller: Self.marketing, userIDs: [65534])])
                == .overflowIdentifier(caller: Self.marketing))
        #expect(
            problem([.init(caller: Self.marketing, groupIDs: [65534])])
                == .overflowIdentifier(caller: Self.marketing))
        #expect(
            problem([], bound: [3: Self.marketing])
                == .boundListenerWithoutUsers(listener: 3, caller: Self.marketing))
        #expect(
            problem(
                [.init(caller: Self.marketing, groupIDs: [7], listener: 3)], bound: [3: Self.marketing])
                == .boundListenerWithoutUsers(listener: 3, caller: Self.marketing))
    }

    @Test func `who sends nothing but security notices may use what is reserved, on any listener`() throws {
        let gate = try GatewayHarness()
        for (caller, user) in GatewayHarness.users {
            for listener in 0..<2 {
                #expect(
                    gate.gateway.mayUseReserve(peer(user: user, listener: listener))
                        == (caller == "security"),
                    "\(caller)")
            }
        }
        #expect(!gate.gateway.mayUseReserve(peer(user: 4242)))
        // Who may send something else besides would fill it with that.
        let wider = try GatewayHarness.policy(isChecked: false) { pages in
            guard case .object(var page)? = pages["callers.yaml"]?.json,
                case .object(var callers)? = page["callers"], case .object(var rule)? = callers["security"]
            else { return }
            rule["types"] = ["categories": ["security", "transactional"]]
            callers["security"] = .object(rule)
            page["callers"] = .object(callers)
            pages["callers.yaml"] = PolicyNode(json: .object(page))
        }
        gate.inForce.replace(with: wider)
        #expect(!gate.gateway.mayUseReserve(peer(user: try #require(GatewayHarness.users["security"]))))
    }

    @Test func `root is a caller only where development allows it`() throws {
        let table = try PeerAttestation(
            bindings: [.init(caller: Self.marketing, userIDs: [0])], boundListeners: [:], acceptsRoot: true)
        #expect(table.caller(of: peer(user: 0)) == Self.marketing)
    }
}
