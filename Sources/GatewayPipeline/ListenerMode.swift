package import GateVocabulary

/// What becomes of the requests that come over one listener (decision SG-0082).
///
/// Operations' setting, and not the policy's: what may go out is the same on every listener, and none lets out what another keeps
/// in.
package enum ListenerMode: Hashable, Sendable {
    /// Sends are decided and carried out.
    case enforce
    /// Sends are decided and recorded, and nothing goes out of them, but for what is enforced before the rest. What changes
    /// people or the gateway is refused.
    case shadow(Enforced)
    /// Everything but sends: where the others are in shadow, consents come this way, and nothing can be sent by it.
    case manage

    /// What is carried out on a listener in shadow.
    package struct Enforced: Hashable, Sendable {
        package var types: Set<TypeID>
        package var callers: Set<CallerName>

        package init(types: Set<TypeID> = [], callers: Set<CallerName> = []) {
            self.types = types
            self.callers = callers
        }

        /// Whether every send is in shadow.
        package var isEmpty: Bool { types.isEmpty && callers.isEmpty }

        func includes(_ request: AttestedRequest) -> Bool {
            types.contains(request.type) || callers.contains(request.caller)
        }
    }

    package var isShadow: Bool { if case .shadow = self { true } else { false } }

    /// Whether a send of this caller that comes over the listener can go out.
    ///
    /// - Parameter isOfCaller: Whether the caller sends a type.
    func forwards(sendsOf caller: CallerName, _ isOfCaller: (TypeID) -> Bool) -> Bool {
        guard case .shadow(let enforced) = self else { return forwards }
        return enforced.callers.contains(caller) || enforced.types.contains(where: isOfCaller)
    }

    /// Whether a send that comes over the listener can go out.
    package var forwards: Bool {
        switch self {
        case .enforce: true
        case .shadow(let enforced): !enforced.isEmpty
        case .manage: false
        }
    }
}

extension Grant {
    /// Whether it lets its holder change people, receipts, keys or the bundle: nobody on a listener in shadow may hold it.
    package var isToWrite: Bool {
        switch self {
        case .send, .sendCritical, .trailRead, .subjectsRead, .metricsRead: false
        case .recipientsWrite, .consentsWrite, .consentsImport, .preferencesWrite, .preferencesStepUp,
            .devicesWrite, .receiptsWrite, .repliesWrite, .keysRotate, .driftRun, .subjectsErase,
            .policyActivate:
            true
        }
    }
}
