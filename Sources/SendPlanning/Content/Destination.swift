package import GateRecords
package import GateVocabulary
package import SealedFormat

/// One device or one address.
///
/// The list it is in and its place there: a record has many references, and is looked at for a few of its members.
package enum Destination: Sendable {
    case device([DeviceRecord], Int)
    case address([AddressRecord], Int)

    package var tag: Tag {
        switch self {
        case .device(let devices, let place): devices[place].tag
        case .address(let addresses, let place): addresses[place].tag
        }
    }

    package var id: DestinationID {
        switch self {
        case .device(let devices, let place): devices[place].id
        case .address(let addresses, let place): addresses[place].id
        }
    }

    package var device: DeviceRecord? {
        if case .device(let devices, let place) = self { devices[place] } else { nil }
    }

    package var address: AddressRecord? {
        if case .address(let addresses, let place) = self { addresses[place] } else { nil }
    }

    /// How this destination stands, for gate 5.
    package var fact: DestinationFact {
        switch self {
        case .device(let devices, let place): devices[place].isActive ? .active : .inactive
        case .address(let addresses, let place):
            addresses[place].verifiedAt == nil
                ? .unverified : addresses[place].contestedAt == nil ? .active : .contested
        }
    }

    /// Zones to read quiet hours in, the device's first.
    package func timeZones(account: String?) -> [String?] {
        switch self {
        case .device(let devices, let place): [devices[place].timeZone, account]
        case .address: [nil, account]
        }
    }
}

/// The key a sealed body is sealed to.
package struct SealingKey: Hashable, Sendable {
    package var id: KeyID
    package var suite: SealingSuite
    package var publicKey: [UInt8]
    /// When it is to be replaced; `nil` while its app is not told.
    package var rotateBy: Instant?

    package init(id: KeyID, suite: SealingSuite, publicKey: [UInt8], rotateBy: Instant? = nil) {
        self.id = id
        self.suite = suite
        self.publicKey = publicKey
        self.rotateBy = rotateBy
    }
}
