package import GatewayPipeline
package import UnixSockets

extension UnixAccounts {
    /// What the kernel reports for users and groups without a mapping. Where it does not say, its default.
    package static var overflowIDs: PeerAttestation.OverflowIDs {
        PeerAttestation.OverflowIDs(
            userID: kernelID("overflowuid") ?? PeerAttestation.OverflowIDs.standard,
            groupID: kernelID("overflowgid") ?? PeerAttestation.OverflowIDs.standard)
    }
}
