import GateSteps

extension Batch {
    /// Lets go of proposals to destroy a device key whose hour is over, at most ``proposalCountMax`` at a time. Those of the
    /// gateway's own keys are a part of the keyring, which is bounded.
    package func dropExpiredProposals() throws {
        let now = try step { try $0.now() }
        let names = try settingNames(in: StepContext.destructionSettingNames, limit: Self.proposalCountMax)
        for name in names {
            do {
                try step { try $0.dropDestructionProposal(name, at: now) }
            } catch let error as StoreError where error.damage != nil {
                // The store's own list names it.
                continue
            }
        }
    }

    private static let proposalCountMax = 256
}
