import GateSteps

extension Batch {
    /// Lets go of settings that count for nothing any more: proposals to destroy a device key whose hour is over, and lists of what a
    /// link switched off that cannot be taken back any more. Proposals for the gateway's own keys are a part of the keyring,
    /// which is bounded.
    ///
    /// - Parameter start: Where to begin; `nil` for the first setting.
    /// - Returns: Where to go on; `nil` at the end.
    package func dropExpiredSettings(from start: String? = nil) throws -> String? {
        let now = try step { try $0.now() }
        let kinds: [(names: Range<String>, drop: (StepContext, String) throws -> Void)] = [
            (StepContext.destructionSettingNames, { try $0.dropDestructionProposal($1, at: now) }),
            (StepContext.muteSettingNames, { try $0.dropMutes($1, at: now) }),
        ]
        let start = start ?? kinds[0].names.lowerBound
        guard let kind = kinds.first(where: { start < $0.names.upperBound }) else { return nil }
        let names = try settingNames(
            in: max(start, kind.names.lowerBound)..<kind.names.upperBound, limit: Self.settingCountMax)
        for name in names {
            do {
                try step { try kind.drop($0, name) }
            } catch let error as StoreError where error.damage != nil {
                // The store's own list names it.
                continue
            }
        }
        return names.count == Self.settingCountMax ? names[names.count - 1] + "\0" : kind.names.upperBound
    }

    private static let settingCountMax = 256
}
