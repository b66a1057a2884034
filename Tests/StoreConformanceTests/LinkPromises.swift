import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import GateRecords
import Testing

@Suite struct LinkPromises {
    @Test(arguments: StoreUnderTest.all)
    func `an unsubscribe link leads to what it was put with first`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = try opened.write { try $0.register("u_1", 1) }
        #expect(try opened.read { try $0.unsubscribeLink(.sample(1)) } == nil)
        for _ in 0..<2 {
            try opened.write { (transaction) throws in
                transaction.putUnsubscribeLink(.sample(1, subject: subject))
                transaction.putUnsubscribeLink(.sample(2, subject: subject))
                #expect(try transaction.unsubscribeLink(.sample(1)) == .sample(1, subject: subject))
            }
        }
        try opened.read { (store) throws in
            #expect(try store.unsubscribeLink(.sample(1)) == .sample(1, subject: subject))
            #expect(try store.unsubscribeLink(.sample(2)) == .sample(2, subject: subject))
            #expect(try store.unsubscribeLink(.sample(3)) == nil)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `a link leads to all who have the mailbox now that it was sent to`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let (one, two) = try opened.write { (try $0.register("u_1", 1), try $0.register("u_2", 2)) }
        let mailbox = AddressKey(.sample(two))
        let hash = IndexKey(StoreContents.sampleIndex).addressHash(mailbox)
        try opened.write { (transaction) throws in
            transaction.putUnsubscribeLink(.sample(1, subject: one, mailbox: hash))
            try transaction.apply(.address(.sample(two), action: .registered, replaced: nil), to: two)
        }
        try opened.read { (store) throws in
            #expect(try store.unsubscribeLink(.sample(1))?.mailbox == hash)
            #expect(Set(try store.mailboxHolders(of: hash)) == Set(try store.holders(of: mailbox)))
            #expect(try store.mailboxHolders(of: hash).contains(two))
            #expect(try store.mailboxHolders(of: hash.reversed()) == [])
        }
        try opened.write { $0.eraseSubject(two) }
        #expect(try opened.read { try !$0.mailboxHolders(of: hash).contains(two) })
    }

    @Test(arguments: StoreUnderTest.all)
    func `a transaction sees what it put and what it erased`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = try opened.write { try $0.register("u_1", 1) }
        try opened.write { $0.putUnsubscribeLink(.sample(1, subject: subject)) }
        try opened.write { (transaction) throws in
            #expect(try transaction.unsubscribeLink(.sample(1)) == .sample(1, subject: subject))
            transaction.eraseSubject(subject)
            #expect(try transaction.unsubscribeLink(.sample(1)) == nil)
        }
        #expect(try opened.read { try $0.unsubscribeLink(.sample(1)) } == nil)
    }

    @Test(arguments: StoreUnderTest.all)
    func `every choice is kept in its order`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = try opened.write { try $0.register("u_1", 1) }
        let before = try opened.read { try $0.preferenceHistory(of: subject) }
        let choices = [PreferenceState.userOn, .userOff, .default, .userOff].enumerated().map {
            PreferenceRecord(
                subject: subject, scope: "marketing", channel: .push, destination: nil, state: $1,
                source: .unsubscribeLink, at: .sample(Int64($0)), caller: CallerName("gateway"))
        }
        for choice in choices.dropLast() {
            try opened.write { try $0.apply(.preference(choice), to: subject) }
        }
        try opened.write { (transaction) throws in
            try transaction.apply(.preference(choices[3]), to: subject)
            #expect(try transaction.preferenceHistory(of: subject) == before + choices)
        }
        #expect(try opened.read { try $0.preferenceHistory(of: subject) } == before + choices)
    }
}

extension UnsubscribeLink {
    static func sample(_ number: Int, subject: SubjectID, mailbox: [UInt8]? = nil) -> UnsubscribeLink {
        UnsubscribeLink(
            id: .sample(number), subject: subject, category: .social, channel: .email,
            destination: .sample(7), mailbox: mailbox)
    }
}
