@testable import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
@testable import GateRecords
import Testing

@Suite struct ErasurePromises {
    /// Two people with everything; the first is to be erased.
    private func twoPeople(_ opened: OpenStore) throws {
        try opened.write { (transaction) throws in
            for number in 1...2 {
                let subject = try transaction.register("u_\(number)", number)
                transaction.insertSend(.sample(number, subject: subject))
                transaction.countForward(
                    of: subject, type: TypeID("promo.offer"), category: .marketing, at: .sample(),
                    send: .sample(number))
                transaction.insertOutbox(.sample(number, send: .sample(number), subject: subject))
                transaction.offerOutbox(.sample(10 + number, send: .sample(number), subject: subject))
                transaction.appendEvent(.sample(number, subject: subject))
                transaction.putDuty(.sample(number, subject: subject))
                transaction.putUnsubscribeLink(.sample(number, subject: subject))
                transaction.putDedupe(
                    DedupeRecord(eventTag: .sample(1), send: .sample(number), at: .sample()), to: subject)
            }
        }
    }

    private func expectForgotten(_ opened: OpenStore) throws {
        try opened.read { (store) throws in
            let gone = SubjectID.sample(1)
            #expect(try store.subject(of: UserID("u_1")) == nil)
            #expect(try store.subject(gone) == nil)
            #expect(try store.events(of: SendID.sample(1)).isEmpty)
            #expect(try store.recipient(gone) == nil)
            #expect(try store.devices(of: gone).isEmpty)
            #expect(try store.addresses(of: gone).isEmpty)
            #expect(try store.deviceKeys(of: gone, device: .sample(1)).isEmpty)
            #expect(try store.deviceKey(.sample(10_001)) == nil)
            #expect(try store.consentRecords(of: gone).isEmpty)
            #expect(try store.preferences(of: gone).isEmpty)
            #expect(try store.preferenceHistory(of: gone).isEmpty)
            #expect(try store.permissionPrompts(of: gone).isEmpty)
            #expect(try store.sends(of: gone, before: nil, limit: 9).isEmpty)
            #expect(try store.send(.sample(1)) == nil)
            #expect(try store.outbox(of: gone).isEmpty)
            #expect(try store.duty(.sample(1), of: gone) == nil)
            #expect(try store.unsubscribeLink(.sample(1)) == nil)
            #expect(try store.unsubscribeLink(.sample(2)) == .sample(2, subject: .sample(2)))
            #expect(try store.holders(of: AddressKey(.sample(gone))).contains(gone) == false)
            #expect(try store.dedupeRecord(.sample(1), to: gone) == nil)
            #expect(try store.overdueDuties(at: .sample(9), limit: 9).map(\.subject) == [.sample(2)])
            #expect(try store.outbox(MessageID.sample(1)) == nil)
            #expect(try store.outbox(MessageID.sample(11)) == nil)
            let counts = try store.forwardCounts(
                of: gone, type: TypeID("promo.offer"), typeSince: .sample(-9), category: .marketing,
                categorySince: .sample(-9), besides: nil)
            #expect(counts.type == 0 && counts.category == 0)
            let events = try store.events(of: CallerName("payments"), after: 0, limit: 9)
            #expect(events.map(\.subject) == [.sample(2)])
            #expect(try store.outboxDepth().rowCount == 2)
            // The other one is untouched.
            let kept = SubjectID.sample(2)
            #expect(try store.subject(of: UserID("u_2"))?.id == kept)
            #expect(try store.recipient(kept) == .sample(kept))
            #expect(try store.devices(of: kept).count == 1)
            #expect(try store.send(.sample(2)) != nil)
            #expect(try store.dedupeRecord(.sample(1), to: kept)?.send == .sample(2))
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `an erased person is unknown at once, and stays so`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try twoPeople(opened)
        try opened.write { (transaction) throws in
            transaction.eraseSubject(.sample(1))
            #expect(try transaction.subject(of: UserID("u_1")) == nil)
        }
        try expectForgotten(opened)
        try opened.store.finishErasures()
        try expectForgotten(opened)
        try opened.store.finishErasures()
        try opened.reopen()
        try expectForgotten(opened)
    }

    @Test(arguments: StoreUnderTest.all)
    func `an erasure takes along the events whose send is gone already`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        func left() throws -> [SubjectID?] {
            try opened.read { try $0.events(of: CallerName("payments"), after: 0, limit: 9).map(\.subject) }
        }
        try opened.write { (transaction) throws in
            for number in 1...2 {
                let subject = try transaction.register("u_\(number)", number)
                transaction.insertSend(.sample(number, subject: subject, at: .sample(10)))
                transaction.appendEvent(.sample(number, subject: subject, at: .sample(20)))
            }
        }
        while try opened.prune(before: .sample(15)) > 0 {}
        #expect(try opened.read { try $0.send(.sample(1)) } == nil)
        #expect(try left() == [.sample(1), .sample(2)])
        try opened.write { $0.eraseSubject(.sample(1)) }
        #expect(try left() == [.sample(2)])
    }

    @Test(arguments: StoreUnderTest.all)
    func `an erasure and a pruning take what their own commit wrote`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subjects = try opened.write { (transaction) throws in
            try (1...3).map { try transaction.register("u_\($0)", $0) }
        }
        func put(_ number: Int, _ transaction: GateMemory) throws {
            let (subject, at) = (subjects[number - 1], Instant.sample(Int64(number) * 10))
            transaction.insertSend(.sample(number, subject: subject, at: at))
            transaction.appendEvent(.sample(number, subject: subject, at: at))
        }
        try opened.commit([
            { try put(1, $0) }, { try put(2, $0) }, { try put(3, $0) },
            { $0.prune(before: .sample(15)) }, { $0.eraseSubject(.sample(2)) },
        ])
        let left = try opened.read { try $0.events(of: CallerName("payments"), after: 0, limit: 9) }
        #expect(left.map(\.subject) == [.sample(3)])
        let sends = try opened.read { store in try (1...3).map { try store.send(.sample($0))?.id } }
        #expect(sends == [nil, nil, .sample(3)])
    }

    @Test(arguments: StoreUnderTest.all)
    func `an erasure that was interrupted is finished by the next start`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try twoPeople(opened)
        try opened.write { $0.eraseSubject(.sample(1)) }
        try opened.reopen()
        try expectForgotten(opened)
    }

    @Test(arguments: StoreUnderTest.all)
    func `an erasure that is rolled back has not happened`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try twoPeople(opened)
        #expect(throws: Interrupted.self) {
            try opened.write { transaction in
                transaction.eraseSubject(.sample(1))
                throw Interrupted()
            }
        }
        let refused = try refusedChange {
            try opened.commit([{ $0.eraseSubject(.sample(1)) }, { try $0.cannotBeWritten() }])
        }
        #expect(refused == 1)
        try opened.store.finishErasures()
        #expect(try opened.read { try $0.subject(of: UserID("u_1"))?.id } == .sample(1))
        #expect(try opened.read { try $0.recipient(.sample(1)) } == .sample(.sample(1)))
        #expect(try opened.read { try $0.outboxDepth().rowCount } == 4)
    }

    @Test(arguments: StoreUnderTest.all)
    func `who comes back after an erasure is somebody new`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try twoPeople(opened)
        let before = try #require(try opened.read { try $0.subject(of: UserID("u_1")) })
        try opened.write { $0.eraseSubject(.sample(1)) }
        // Even before the old mapping is destroyed.
        let after = try opened.write { try $0.makeSubject(for: UserID("u_1"), subject: .sample(3)) }
        #expect(after.id == .sample(3))
        #expect(!HMACKey.constantTimeEqual(before.tagKey, after.tagKey))
        try opened.store.finishErasures()
        try opened.reopen()
        let found = try #require(try opened.read { try $0.subject(of: UserID("u_1")) })
        #expect(found.id == .sample(3))
        #expect(HMACKey.constantTimeEqual(found.tagKey, after.tagKey))
    }

    @Test(arguments: StoreUnderTest.all)
    func `erasing some while others register and read disturbs neither`(_ kind: StoreUnderTest) async throws {
        let opened = try OpenStore(kind)
        let store = opened.store
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 1...60 {
                    try store.write { transaction in
                        let user = UserID("u_\(number)")
                        // As a registration does: look first, then make.
                        #expect(try transaction.subject(of: user) == nil)
                        let subject = try transaction.makeSubject(for: user, subject: .sample(number)).id
                        try transaction.putRecipient(.sample(subject))
                    }
                }
            }
            group.addTask {
                for number in 1...20 {
                    let subject = try store.write { transaction in
                        let subject = try transaction.makeSubject(
                            for: UserID("gone_\(number)"), subject: .sample(1000 + number)
                        ).id
                        transaction.eraseSubject(subject)
                        return subject
                    }
                    try store.finishErasures()
                    #expect(try store.read { try $0.subject(subject) } == nil)
                }
            }
            try await group.waitForAll()
        }
        for number in 1...60 {
            #expect(try opened.read { try $0.subject(of: UserID("u_\(number)"))?.id } == .sample(number))
        }
    }
}
