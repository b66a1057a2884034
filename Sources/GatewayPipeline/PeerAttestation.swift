package import GateVocabulary

/// The table of which Unix users and groups are which caller.
///
/// Default deny: a peer that matches nothing is no caller. Checked when it is made, so that a gateway with an
/// ambiguous table never starts.
package struct PeerAttestation: Sendable {
    /// One line of the table.
    package struct Binding: Hashable, Sendable {
        package var caller: CallerName
        package var userIDs: Set<UInt32>
        /// Effective or supplementary group; a peer needs only one of them.
        package var groupIDs: Set<UInt32>
        /// The listener this line is for; `nil` for every listener that is not bound to a caller.
        package var listener: Int?

        package init(
            caller: CallerName, userIDs: Set<UInt32> = [], groupIDs: Set<UInt32> = [], listener: Int? = nil
        ) {
            self.caller = caller
            self.userIDs = userIDs
            self.groupIDs = groupIDs
            self.listener = listener
        }
    }

    /// The ids that the kernel reports for every user, or group, without a mapping in our user namespace (user_namespaces(7)).
    /// Many users have them at once, so they name none.
    package struct OverflowIDs: Hashable, Sendable {
        /// The kernel's default, under which files and peers of other machines and containers show up as well.
        package static let standard: UInt32 = 65534

        package let userIDs: Set<UInt32>
        package let groupIDs: Set<UInt32>

        /// - Parameters:
        ///   - userID: `/proc/sys/kernel/overflowuid`, where it is set to another than the default.
        ///   - groupID: `/proc/sys/kernel/overflowgid`, likewise.
        package init(userID: UInt32 = standard, groupID: UInt32 = standard) {
            userIDs = [Self.standard, userID]
            groupIDs = [Self.standard, groupID]
        }
    }

    /// A table that contradicts itself or names a caller that it must not.
    package enum TableError: Error, Hashable, Sendable, CustomStringConvertible {
        package var description: String { message }

        /// ``OverflowIDs``.
        case overflowIdentifier(caller: CallerName)
        /// Root can act as any user of the machine, so it vouches for no caller. Allowed with `--dev` only.
        case rootUser(caller: CallerName)
        /// Root's group is what a process has that was started as root and changed its user alone.
        case rootGroup(caller: CallerName)
        /// One uid would speak for two callers on the same listener.
        case ambiguousUser(userID: UInt32, first: CallerName, second: CallerName)
        /// One group would speak for two callers on the same listener.
        case ambiguousGroup(groupID: UInt32, first: CallerName, second: CallerName)
        /// A listener bound to a caller must say whose uids may connect to it.
        case boundListenerWithoutUsers(listener: Int, caller: CallerName)

        package var message: String {
            switch self {
            case .overflowIdentifier(let caller):
                "caller `\(caller)` is bound to the kernel's overflow uid or gid (65534), which stands for every unmapped user"
            case .rootUser(let caller):
                "caller `\(caller)` is bound to uid 0; only `serve --dev` accepts root"
            case .rootGroup(let caller):
                "caller `\(caller)` is bound to gid 0; only `serve --dev` accepts root's group"
            case .ambiguousUser(let user, let first, let second):
                "uid \(user) is bound to `\(first)` and to `\(second)` on the same listener"
            case .ambiguousGroup(let group, let first, let second):
                "gid \(group) is bound to `\(first)` and to `\(second)` on the same listener"
            case .boundListenerWithoutUsers(let listener, let caller):
                "listener \(listener) is bound to `\(caller)` but names no uids that may use it"
            }
        }
    }

    private let bindings: [Binding]
    /// Users that are no caller, and groups that give nobody one, whatever else a peer is.
    private let excludedUserIDs: Set<UInt32>
    private let excludedGroupIDs: Set<UInt32>

    /// - Parameters:
    ///   - boundListeners: Listener number → the caller it is bound to.
    ///   - acceptsRoot: With `--dev` only.
    package init(
        bindings: [Binding], boundListeners: [Int: CallerName], acceptsRoot: Bool,
        overflow: OverflowIDs = OverflowIDs()
    ) throws(TableError) {
        for binding in bindings {
            guard binding.userIDs.isDisjoint(with: overflow.userIDs),
                binding.groupIDs.isDisjoint(with: overflow.groupIDs)
            else { throw .overflowIdentifier(caller: binding.caller) }
            guard acceptsRoot || !binding.userIDs.contains(0) else { throw .rootUser(caller: binding.caller) }
            guard acceptsRoot || !binding.groupIDs.contains(0) else {
                throw .rootGroup(caller: binding.caller)
            }
        }
        excludedUserIDs = acceptsRoot ? overflow.userIDs : overflow.userIDs.union([0])
        excludedGroupIDs = acceptsRoot ? overflow.groupIDs : overflow.groupIDs.union([0])
        for (position, first) in bindings.enumerated() {
            for second in bindings[(position + 1)...]
            where first.listener == second.listener && first.caller != second.caller {
                if let user = first.userIDs.intersection(second.userIDs).min() {
                    throw .ambiguousUser(userID: user, first: first.caller, second: second.caller)
                }
                if let group = first.groupIDs.intersection(second.groupIDs).min() {
                    throw .ambiguousGroup(groupID: group, first: first.caller, second: second.caller)
                }
            }
        }
        for (listener, caller) in boundListeners.sorted(by: { $0.key < $1.key }) {
            let users = bindings.filter { $0.listener == listener && $0.caller == caller }
            guard users.contains(where: { !$0.userIDs.isEmpty }) else {
                throw .boundListenerWithoutUsers(listener: listener, caller: caller)
            }
        }
        self.bindings = bindings
    }

    /// The caller; `nil` for a peer that matches nothing, and for root and a user without a name whatever their groups are.
    ///
    /// A user binding is more specific than a group binding and wins. A peer that matches two callers, by two of
    /// its groups, is neither: which one was meant cannot be told. On a listener bound to a caller only that
    /// caller's bindings for that listener count.
    package func caller(of peer: Peer) -> CallerName? {
        let credentials = peer.credentials
        guard !excludedUserIDs.contains(credentials.userID) else { return nil }
        let candidates = bindings.lazy.filter { binding in
            if let bound = peer.boundCaller {
                return binding.listener == peer.listener && binding.caller == bound
            }
            return binding.listener == nil || binding.listener == peer.listener
        }
        // Without a set: every request asks, and most peers are bound by their user.
        let byUser = candidates.filter { $0.userIDs.contains(credentials.userID) }
        if let caller = byUser.first?.caller {
            return byUser.allSatisfy { $0.caller == caller } ? caller : nil
        }
        let groups = Set(credentials.supplementaryGroups).union([credentials.groupID])
            .subtracting(excludedGroupIDs)
        let byGroup = Set(candidates.filter { !$0.groupIDs.isDisjoint(with: groups) }.map(\.caller))
        return byGroup.count == 1 ? byGroup.first : nil
    }
}
