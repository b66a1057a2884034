package import GateVocabulary

/// Which limits a type is under, and what happens to what is above them.
extension PolicyBundle {
    /// What the gateway sends in place of what it gathered.
    package var summaries: Set<TypeID> {
        Set(categories.values.compactMap(\.summary)).union(types.values.compactMap(\.ownSummary))
    }

    /// What the gateway tells one person of their own account: that a device's key was replaced, and that a number or
    /// mailbox was verified by another person.
    package var ownNotices: Set<TypeID> {
        Set([channels.deviceKeyAge?.replacementNotice, channels.contestedNotice].compactMap(\.self))
    }

    /// What the gateway says on its own: the summaries, and its ``ownNotices``.
    package var gatewayTypes: Set<TypeID> { summaries.union(ownNotices) }

    /// The type's own rule, or its category's.
    package func overflow(of type: NotificationType) -> OverflowRule {
        type.ownOverflow ?? categories[type.category]?.overflow ?? .drop
    }

    /// By which type it is told when it was gathered; `nil` for what is never gathered.
    package func summary(of type: NotificationType) -> TypeID? {
        guard overflow(of: type) == .digest else { return nil }
        return type.ownSummary ?? categories[type.category]?.summary
    }

    /// At most so many of a type: its own line, or else its tier's. A duty, a summary and what nothing may silence have
    /// no default.
    package func typeCap(of type: NotificationType) -> Cap? {
        guard overflow(of: type) != .allow else { return nil }
        if let own = limits.types[type.id] { return own }
        guard !isNeverSilenced(type), !isSummary(type) else { return nil }
        return limits.tiers[type.tier]
    }

    package func categoryCap(of type: NotificationType) -> Cap? {
        overflow(of: type) == .allow ? nil : limits.categories[type.category]
    }

    /// At most so many of everything: not of what no limit may silence.
    package func everythingCap(of type: NotificationType) -> Cap? {
        isNeverSilenced(type) ? nil : limits.everything
    }

    /// The types that the limit over everything does not count.
    package var uncountedTypes: Set<TypeID> {
        Set(types.values.filter { $0.category == .security || $0.tier == .critical }.map(\.id))
    }

    /// Security, the highest tier, a duty, and what its page or category lets through.
    private func isNeverSilenced(_ type: NotificationType) -> Bool {
        type.category == .security || type.tier == .critical || type.mandatory != nil
            || overflow(of: type) == .allow
    }

    private func isSummary(_ type: NotificationType) -> Bool {
        categories[type.category]?.summary == type.id || types.values.contains { $0.ownSummary == type.id }
    }
}
