import GateVocabulary
import GateRecords
import SendPlanning

extension Destination {
    /// The destination as far as composing and sealing need to know it.
    func profile(key: DeviceKeyRecord?, rotatedBy rotateBy: Instant?) throws -> DestinationProfile {
        switch self {
        case .address(let addresses, let place):
            return DestinationProfile(
                tag: addresses[place].tag, kind: addresses[place].channel == .sms ? .phone : .mailbox)
        case .device(let devices, let place):
            let sealing = try key.map {
                DestinationProfile.SealingKey(
                    id: $0.key, suite: try $0.sealingSuite, rotateBy: rotateBy)
            }
            return DestinationProfile(
                tag: devices[place].tag,
                kind: .device(
                    devices[place].id, platform: devices[place].platform, provider: devices[place].provider,
                    app: devices[place].app, key: sealing))
        }
    }
}
