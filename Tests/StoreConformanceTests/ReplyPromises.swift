import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing

@Suite struct ReplyPromises {
    private func record(_ number: UInt8, at moment: Instant = .sample()) -> ReplyRecord {
        ReplyRecord(
            key: RequestKey(caller: CallerName("replies"), idHash: [UInt8](repeating: number, count: 16)),
            contentMAC: [UInt8](repeating: number, count: 32), entryIndex: 0,
            effect: ReplyEffect.allCases[Int(number) % 5],
            at: moment)
    }

    @Test(arguments: StoreUnderTest.all)
    func `a number leads to everybody who has it, and to nobody who has it no more`(_ kind: StoreUnderTest)
        throws
    {
        let opened = try OpenStore(kind)
        let one = try opened.write { try $0.register("u_1", 1) }
        let two = try opened.write { try $0.register("u_2", 2) }
        let number = AddressKey(.sample(one))
        func holders() throws -> Set<SubjectID> { try opened.read { Set(try $0.holders(of: number)) } }
        let before = try holders()
        for subject in [one, two] {
            try opened.write { (transaction) throws in
                try transaction.apply(
                    .address(.sample(subject), action: .registered, replaced: nil), to: subject)
                #expect(try transaction.holders(of: number).contains(subject))
            }
        }
        #expect(try holders() == before.union([one, two]))
        #expect(
            try opened.read { try $0.holders(of: AddressKey(.email, registered: "nobody@example.org")) } == []
        )
        try opened.write { try $0.apply(.addressRemoved(AddressRecord.sample(one).tag), to: one) }
        #expect(try !holders().contains(one))
        #expect(try holders().contains(two))
        try opened.write { $0.eraseSubject(two) }
        #expect(try !holders().contains(two))
    }

    @Test(arguments: StoreUnderTest.all)
    func `a number's newest confirmation is found, and another number's is not`(_ kind: StoreUnderTest) throws
    {
        let opened = try OpenStore(kind)
        func confirmed(_ number: UInt8) throws -> Instant? {
            try opened.read { try $0.confirmed([UInt8](repeating: number, count: 16)) }
        }
        #expect(try confirmed(7) == nil)
        for (id, number, seconds) in [(1, 7, 0), (2, 7, 90), (3, 7, 60), (4, 8, 120)]
            as [(UInt8, UInt8, Int64)]
        {
            var reply = record(id, at: .sample(seconds))
            reply.confirmation = ReplyConfirmation(
                addressHash: [UInt8](repeating: number, count: 16), locale: "nb")
            try opened.write { $0.putReply(reply) }
            #expect(try opened.read { try $0.reply(reply.key) } == reply)
        }
        #expect(try confirmed(7) == .sample(90))
        #expect(try confirmed(8) == .sample(120))
        #expect(try confirmed(9) == nil)
    }

    @Test(arguments: StoreUnderTest.all)
    func `a reply is kept as it was put, for its time`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        #expect(try opened.read { try $0.reply(record(1).key) } == nil)
        try opened.write { (transaction) throws in
            transaction.putReply(record(1))
            transaction.putReply(record(2, at: .sample(60)))
            #expect(try transaction.reply(record(1).key) == record(1))
        }
        for reply in [record(1), record(2, at: .sample(60))] {
            #expect(try opened.read { try $0.reply(reply.key) } == reply)
        }
        // The same id of another caller is another reply.
        let other = RequestKey(caller: CallerName("another"), idHash: record(1).key.idHash)
        #expect(try opened.read { try $0.reply(other) } == nil)
        while try opened.prune(before: .sample(60)) > 0 {}
        #expect(try opened.read { try $0.reply(record(1).key) } == nil)
        #expect(try opened.read { try $0.reply(record(2).key) } == record(2, at: .sample(60)))
    }
}
