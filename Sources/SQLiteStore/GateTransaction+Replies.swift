import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateReading {
    private static let reply = StatementText(
        "reply",
        "SELECT content_mac, entry, effect, at, address_hash, locale FROM reply WHERE caller = ? AND id_hash = ?"
    )

    final func reply(_ key: RequestKey) throws -> ReplyRecord? {
        guard let caller = try strings.number(of: key.caller.text, in: gate) else { return nil }
        return try gate.first(Self.reply) {
            $0.add(caller)
            $0.add(key.idHash)
        } read: { row in
            var record = ReplyRecord(
                key: key, contentMAC: row.byteArray(), entryIndex: UInt64(bitPattern: row.integer()),
                effect: try row.code(), at: try row.instant())
            if let address = row.optionalByteArray() {
                record.confirmation = ReplyConfirmation(addressHash: address, locale: row.text())
            }
            return record
        }
    }

    private static let confirmed = StatementText(
        "reply", "SELECT at FROM reply WHERE address_hash = ? ORDER BY at DESC LIMIT 1")

    final func confirmed(_ addressHash: [UInt8]) throws -> Instant? {
        try gate.first(Self.confirmed, { $0.add(addressHash) }) { try $0.instant() }
    }
}

extension GateTransaction {
    private static let insertReply = StatementText(
        "reply", "INSERT INTO reply VALUES (?, ?, ?, ?, ?, ?, ?, ?)")

    func insertReply(_ reply: ReplyRecord) throws {
        let caller = try strings.makeNumber(of: reply.key.caller.text, in: gate)
        try gate.change(Self.insertReply) {
            $0.add(caller)
            $0.add(reply.key.idHash)
            $0.add(reply.contentMAC)
            $0.add(Int64(bitPattern: reply.entryIndex))
            $0.add(reply.effect)
            $0.add(reply.at)
            $0.add(reply.confirmation?.addressHash)
            $0.add(reply.confirmation?.locale)
        }
    }
}
