import GateVocabulary
import RecipientModel
import SendPlanning

extension Destination {
    /// The destination as far as composing and sealing need to know it.
    func profile(key: DeviceKeyRecord?, rotatedBy rotateBy: Instant?) throws -> DestinationProfile {
        switch self {
        case .address(let address):
            return DestinationProfile(tag: address.tag, kind: address.channel == .sms ? .phone : .mailbox)
        case .device(let device):
            let sealing = try key.map {
                DestinationProfile.SealingKey(
                    id: $0.key, suite: try $0.sealingSuite, rotateBy: rotateBy)
            }
            return DestinationProfile(
                tag: device.tag,
                kind: .device(device.id, platform: device.platform, app: device.app, key: sealing))
        }
    }
}
