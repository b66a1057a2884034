import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateReading {
    private static let reply = StatementText(
        "reply", key: 2,
        """
        SELECT caller, id_hash, content_mac, entry, is_withdrawal, at FROM reply WHERE caller = ? AND id_hash = ?
        """)

    final func reply(_ key: RequestKey) throws -> ReplyRecord? {
        guard let caller = try strings.number(of: key.caller.text, in: gate) else { return nil }
        let reply = try gate.first(Self.reply) {
            $0.add(caller)
            $0.add(key.idHash)
        } read: { row in
            _ = row.integer()
            _ = row.byteArray()
            return ReplyRecord(
                key: key, contentMAC: row.byteArray(), entryIndex: UInt64(bitPattern: row.integer()),
                isWithdrawal: row.integer() == 1, at: try row.instant())
        }
        if reply == nil { try damages.refuseMiss(in: "reply") }
        return reply
    }
}

extension GateTransaction {
    private static let insertReply = StatementText(
        "reply", "INSERT INTO reply VALUES (?, ?, ?, ?, ?, ?)")

    func insertReply(_ reply: ReplyRecord) throws {
        let caller = try strings.makeNumber(of: reply.key.caller.text, in: gate)
        try gate.change(Self.insertReply) {
            $0.add(caller)
            $0.add(reply.key.idHash)
            $0.add(reply.contentMAC)
            $0.add(Int64(bitPattern: reply.entryIndex))
            $0.add(Int64(reply.isWithdrawal ? 1 : 0))
            $0.add(reply.at)
        }
    }
}
