import GateVocabulary
package import GateRecords
import SealedFormat
import WireProtocol

extension RecipientState {
    /// Ended keys of one device that are kept, those that were registered last: as many as `KeptDeviceKeys` keeps on the phone, so
    /// that the phone could not open what was sealed to an earlier one either. Of those kept the security team can still say that
    /// one was compromised.
    package static let endedKeyCountMax = 32
    /// Keys kept of all devices that were removed, in whatever state: as many as twenty devices register within
    /// ``StepContext/registrationWindowSeconds``, so that the limit of a device that comes back is known.
    package static let removedDeviceKeyCountMax =
        WireLimits.destinationCountMax * StepContext.registrationCountMax
    /// Keys let go of in one step, so that a person with thousands from before there was a bound holds nothing up.
    package static let surplusKeyCountMax = 64

    /// The keys that a person's state has no use for, those that were registered first in front.
    ///
    /// A compromised one is refused for all that: what its encodings share is kept beside the persons
    /// (``GateMemory/markCompromised(_:at:)``).
    package func surplusKeys() -> [DeviceKeyRecord] {
        let registered = Set(devices.map(\.tag))
        var endedCounts: [Tag: Int] = [:]
        var removedDeviceKeyCount = 0
        var surplus: [DeviceKeyRecord] = []
        // They stand in the order of their registration.
        for key in keys.reversed() {
            if !registered.contains(key.device) {
                removedDeviceKeyCount += 1
                if removedDeviceKeyCount > Self.removedDeviceKeyCountMax { surplus.append(key.forgotten) }
            } else if key.isEnded {
                endedCounts[key.device, default: 0] += 1
                if endedCounts[key.device, default: 0] > Self.endedKeyCountMax {
                    surplus.append(key.forgotten)
                }
            }
        }
        return Array(surplus.reversed().prefix(Self.surplusKeyCountMax))
    }
}

extension DeviceKeyRecord {
    fileprivate var isEnded: Bool {
        switch KeyState(rawValue: state) {
        case .deactivated, .compromised, .destroyed: true
        default: false
        }
    }

    /// As the entry has it that lets go of the key: what had not ended ends with it.
    var forgotten: DeviceKeyRecord {
        var key = self
        if !isEnded { key.state = KeyState.destroyed.rawValue }
        return key
    }
}
