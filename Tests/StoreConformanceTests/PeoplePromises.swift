import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Testing

@Suite struct PeoplePromises {
    @Test(arguments: StoreUnderTest.all)
    func `a user keeps one pseudonym and one tag key`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let first = try opened.write { try $0.makeSubject(for: UserID("u_1"), subject: .sample(1)) }
        let again = try opened.write { try $0.makeSubject(for: UserID("u_1"), subject: .sample(2)) }
        try opened.reopen()
        let found = try #require(try opened.read { try $0.subject(of: UserID("u_1")) })
        #expect(first.id == .sample(1) && again.id == .sample(1) && found.id == .sample(1))
        #expect(HMACKey.constantTimeEqual(first.tagKey, again.tagKey))
        #expect(HMACKey.constantTimeEqual(first.tagKey, found.tagKey))
        let byPseudonym = try #require(try opened.read { try $0.subject(SubjectID.sample(1)) })
        #expect(byPseudonym.id == .sample(1))
        #expect(HMACKey.constantTimeEqual(first.tagKey, byPseudonym.tagKey))
        #expect(try opened.read { try $0.subject(of: UserID("u_2")) } == nil)
        #expect(try opened.read { try $0.subject(SubjectID.sample(2)) } == nil)
        let other = try opened.write { try $0.makeSubject(for: UserID("u_2"), subject: .sample(3)) }
        #expect(!HMACKey.constantTimeEqual(first.tagKey, other.tagKey))
    }

    @Test(arguments: StoreUnderTest.all)
    func `people are gone through in order, a bounded number at a time, without those erased`(
        _ kind: StoreUnderTest
    ) throws {
        let opened = try OpenStore(kind)
        #expect(try opened.read { try $0.people(after: nil, limit: 10) }.isEmpty)
        var all: [SubjectID] = []
        for number in 1...5 { all.append(try opened.write { try $0.register("u_\(number)", number) }) }
        all.sort()
        func listed(by limit: Int) throws -> [SubjectID] {
            var found: [SubjectID] = []
            while true {
                let piece = try opened.read { try $0.people(after: found.last, limit: limit) }
                if piece.isEmpty { break }
                #expect(piece.count <= limit)
                found += piece
            }
            return found
        }
        for limit in [1, 2, 5, 100] { #expect(try listed(by: limit) == all) }
        let gone = all.remove(at: 2)
        try opened.write { $0.eraseSubject(gone) }
        #expect(try listed(by: 2) == all)
        #expect(try opened.read { try $0.people(after: gone, limit: 1) } == [all[2]])
    }

    @Test(arguments: StoreUnderTest.all)
    func `every record of a person comes back as it was put`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject: SubjectID = try opened.write { try $0.register("u_1") }
        try opened.reopen()
        try opened.read { (store) throws in
            #expect(try store.recipient(subject) == .sample(subject))
            var device = DeviceRecord.sample(subject)
            // The prompt that was put after it has been answered.
            device.osPermission = .granted
            #expect(try store.devices(of: subject) == [device])
            #expect(try store.addresses(of: subject) == [.sample(subject)])
            var key = DeviceKeyRecord.sample(subject)
            key.key = .sample(10_001)
            #expect(try store.deviceKeys(of: subject, device: .sample(1)) == [key])
            #expect(try store.deviceKey(.sample(10_001)) == key)
            var consent = ConsentRecord.sample(subject)
            consent.sequence = 1
            #expect(try store.consentRecords(of: subject) == [consent])
            #expect(try store.preferences(of: subject) == [.sample(subject)])
            #expect(try store.preferenceHistory(of: subject) == [.sample(subject)])
            #expect(
                try store.permissionPrompts(of: subject) == [
                    PermissionPrompt(
                        subject: subject, device: .sample(1), shownAt: .sample(), answer: .granted)
                ])
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a push token leads to the active device that was put last with it`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let (one, two) = (SubjectID.sample(1), SubjectID.sample(2))
        var (first, second) = (DeviceRecord.sample(one), DeviceRecord.sample(two))
        first.token = "AAFF"
        second.token = "aaff"
        func found(_ identity: String) throws -> DeviceRecord? {
            try opened.read { try $0.device(withToken: identity) }
        }
        #expect(try found("aaff") == nil)
        try opened.write { try $0.putDevice(first) }
        // An APNs token is the same in either case.
        #expect(first.tokenIdentity == second.tokenIdentity)
        #expect(try found("aaff") == first)
        try opened.write { try $0.putDevice(second) }
        try opened.reopen()
        #expect(try found("aaff") == second)
        // One of Expo's is compared as it is.
        var byExpo = DeviceRecord.sample(two, 2)
        byExpo.token = "ExponentPushToken[aA]"
        #expect(byExpo.provider == .expo)
        try opened.write { try $0.putDevice(byExpo) }
        #expect(try found("ExponentPushToken[aA]") == byExpo)
        #expect(try found("exponentpushtoken[aa]") == nil)
        // Another token, an inactive device and a removed one lead nowhere any more.
        second.token = "bb"
        try opened.write { try $0.putDevice(second) }
        #expect(try found("aaff") == nil && found("bb") == second)
        second.isActive = false
        try opened.write { try $0.putDevice(second) }
        #expect(try found("bb") == nil)
        first.seenAt = .sample(9)
        try opened.write { try $0.putDevice(first) }
        #expect(try found("aaff") == first)
        #expect(throws: Interrupted.self) {
            try opened.write { transaction in
                try transaction.removeDevice(first.tag, of: one)
                #expect(try transaction.device(withToken: "aaff") == nil)
                throw Interrupted()
            }
        }
        #expect(try found("aaff") == first)
        try opened.write { try $0.removeDevice(first.tag, of: one) }
        #expect(try found("aaff") == nil)
        try opened.write { try $0.putDevice(first) }
        try opened.write { $0.eraseSubject(one) }
        #expect(try found("aaff") == nil)
    }

    @Test(arguments: StoreUnderTest.all)
    func `absent fields come back absent`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = SubjectID.sample(1)
        var device = DeviceRecord.sample(subject)
        (device.region, device.timeZone) = (nil, nil)
        var address = AddressRecord.sample(subject)
        address.verifiedAt = nil
        var key = DeviceKeyRecord.sample(subject)
        key.challenge = nil
        var consent = ConsentRecord.sample(subject)
        (consent.address, consent.jurisdiction, consent.notice, consent.expiresAt) = (nil, nil, nil, nil)
        consent.previousHash = ""
        let prompt = PermissionPrompt(subject: subject, device: .sample(1), shownAt: .sample(), answer: nil)
        try opened.write { (transaction) throws in
            try transaction.putRecipient(.bare(subject))
            try transaction.putDevice(device)
            try transaction.putAddress(address)
            try transaction.putDeviceKey(key)
            try transaction.appendConsent(consent)
            try transaction.putPermissionPrompt(prompt)
        }
        consent.sequence = 1
        try opened.read { (store) throws in
            #expect(try store.recipient(subject) == .bare(subject))
            #expect(try store.devices(of: subject) == [device])
            #expect(try store.addresses(of: subject) == [address])
            #expect(try store.deviceKeys(of: subject, device: device.tag) == [key])
            #expect(try store.consentRecords(of: subject) == [consent])
            #expect(try store.permissionPrompts(of: subject) == [prompt])
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `putting again replaces, removing removes, and others keep theirs`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let (subject, other) = (SubjectID.sample(1), SubjectID.sample(2))
        try opened.write { (transaction) throws in
            for person in [subject, other] {
                try transaction.putRecipient(.sample(person))
                for number in [3, 1, 2] {
                    try transaction.putDevice(.sample(person, number))
                    try transaction.putAddress(.sample(person, number))
                }
            }
            try transaction.putRecipient(.bare(subject))
            var device = DeviceRecord.sample(subject, 2)
            device.token = "another token"
            try transaction.putDevice(device)
            try transaction.removeDevice(.sample(3), of: subject)
            try transaction.removeAddress(.sample(101), of: subject)
            // Removing what is not there is no error.
            try transaction.removeDevice(.sample(77), of: subject)
        }
        try opened.read { (store) throws in
            #expect(try store.recipient(subject) == .bare(subject))
            #expect(try store.devices(of: subject).map(\.tag) == [.sample(1), .sample(2)])
            #expect(try store.devices(of: subject).map(\.token) == ["token-of-device-1", "another token"])
            #expect(try store.addresses(of: subject).map(\.id.text) == ["address-2", "address-3"])
            #expect(try store.devices(of: other).count == 3)
            #expect(try store.addresses(of: other).count == 3)
            #expect(try store.recipient(other) == .sample(other))
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `more devices than anybody should have are still only rows`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            for number in 1...60 { try transaction.putDevice(.sample(.sample(1), number)) }
        }
        #expect(try opened.read { try $0.devices(of: .sample(1)).count } == 60)
    }

    @Test(arguments: StoreUnderTest.all)
    func `keys of a device come newest first, in whatever state`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = SubjectID.sample(1)
        try opened.write { (transaction) throws in
            try transaction.putDeviceKey(.sample(subject, 1, createdAt: .sample(10)))
            try transaction.putDeviceKey(.sample(subject, 2, createdAt: .sample(30)))
            try transaction.putDeviceKey(.sample(subject, 3, createdAt: .sample(20)))
            var revoked = DeviceKeyRecord.sample(subject, 1, createdAt: .sample(10))
            (revoked.state, revoked.challenge) = ("compromised", nil)
            try transaction.putDeviceKey(revoked)
            var elsewhere = DeviceKeyRecord.sample(subject, 4)
            elsewhere.device = .sample(2)
            try transaction.putDeviceKey(elsewhere)
        }
        try opened.read { (store) throws in
            let keys = try store.deviceKeys(of: subject, device: .sample(1))
            #expect(keys.map(\.key) == [.sample(202), .sample(203), .sample(201)])
            #expect(keys.map(\.state) == ["pre_activation", "pre_activation", "compromised"])
            #expect(keys[2].challenge == nil)
            #expect(try store.deviceKey(.sample(204))?.device == .sample(2))
            #expect(try store.deviceKey(.sample(999)) == nil)
        }
        try opened.write { (transaction) throws in
            var forgotten = DeviceKeyRecord.sample(subject)
            forgotten.key = .sample(203)
            try transaction.apply(.deviceKeyForgotten(forgotten), to: subject)
        }
        try opened.read { (store) throws in
            #expect(try store.deviceKey(.sample(203)) == nil)
            #expect(try store.deviceKey(.sample(201)) != nil)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a key id belongs to one device for ever`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { try $0.putDeviceKey(.sample(.sample(1))) }
        #expect(throws: (any Error).self) {
            try opened.write { try $0.putDeviceKey(.sample(.sample(2))) }
        }
        #expect(try opened.read { try $0.deviceKey(.sample(201))?.subject } == .sample(1))
    }

    @Test(arguments: StoreUnderTest.all)
    func `the consent ledger counts from one for each person and keeps its order`(_ kind: StoreUnderTest)
        throws
    {
        let opened = try OpenStore(kind)
        let (subject, other) = (SubjectID.sample(1), SubjectID.sample(2))
        try opened.write { (transaction) throws in
            #expect(try transaction.appendConsent(.sample(subject, 1)) == 1)
            #expect(try transaction.appendConsent(.sample(other, 1)) == 1)
            // Out of order in time: the ledger is in order of arrival.
            #expect(try transaction.appendConsent(.sample(subject, 9, state: .withdrawn)) == 2)
        }
        try opened.reopen()
        #expect(try opened.write { try $0.appendConsent(.sample(subject, 4)) } == 3)
        try opened.read { (store) throws in
            let ledger = try store.consentRecords(of: subject)
            #expect(ledger.map(\.sequence) == [1, 2, 3])
            #expect(ledger.map(\.id) == ["consent-1", "consent-9", "consent-4"])
            #expect(ledger[1].state == .withdrawn && ledger[1].withdraws == .sample(300))
            #expect(try store.consentRecords(of: other).count == 1)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `the newest transition of each choice is in force, and none is forgotten`(_ kind: StoreUnderTest)
        throws
    {
        let opened = try OpenStore(kind)
        let subject = SubjectID.sample(1)
        let transitions: [PreferenceRecord] = [
            .sample(subject, state: .userOff, at: .sample(1)),
            .sample(subject, destination: .sample(1), state: .userOff, at: .sample(2)),
            .sample(subject, scope: "social", state: .userOff, at: .sample(3)),
            .sample(subject, state: .userOn, at: .sample(4)),
        ]
        try opened.write { (transaction) throws in
            for transition in transitions.dropLast() { try transaction.appendPreference(transition) }
        }
        try opened.reopen()
        try opened.write { try $0.appendPreference(transitions[3]) }
        try opened.read { (store) throws in
            #expect(Set(try store.preferences(of: subject)) == Set(transitions[1...]))
            #expect(try store.preferenceHistory(of: subject) == transitions)
            #expect(try store.preferences(of: .sample(2)).isEmpty)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a key stays with its device and its person`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = try opened.write { try $0.register("u_1", 1) }
        let other = try opened.write { try $0.register("u_2", 2) }
        let key = try #require(
            try opened.read { try $0.deviceKeys(of: subject, device: .sample(1)).first })
        var (elsewhere, another) = (key, key)
        elsewhere.device = .sample(2)
        another.subject = other
        for moved in [elsewhere, another] {
            #expect(throws: (any Error).self) { try opened.write { try $0.putDeviceKey(moved) } }
        }
        #expect(try opened.read { try $0.deviceKey(key.key) } == key)
    }
}
