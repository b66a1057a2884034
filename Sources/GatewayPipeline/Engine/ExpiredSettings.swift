import GateSteps

extension Batch {
    /// Lets go of settings that count for nothing any more, at most ``settingCountMax`` of a kind at a time: proposals to destroy a
    /// device key whose hour is over, and lists of what a link switched off that cannot be taken back any more. Proposals for the
    /// gateway's own keys are a part of the keyring, which is bounded.
    package func dropExpiredSettings() throws {
        let now = try step { try $0.now() }
        try drop(StepContext.destructionSettingNames) { try $0.dropDestructionProposal($1, at: now) }
        try drop(StepContext.muteSettingNames) { try $0.dropMutes($1, at: now) }
    }

    private func drop(_ names: Range<String>, _ drop: (StepContext, String) throws -> Void) throws {
        for name in try settingNames(in: names, limit: Self.settingCountMax) {
            do {
                try step { try drop($0, name) }
            } catch let error as StoreError where error.damage != nil {
                // The store's own list names it.
                continue
            }
        }
    }

    private static let settingCountMax = 256
}
