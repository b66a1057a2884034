/// What a reply of a recipient came to.
package enum ReplyEffect: String, CaseIterable, Sendable, Hashable {
    /// Something that counted at the number or mailbox ended.
    case withdrawn
    /// The text takes nothing back.
    case notAWithdrawal = "not_a_withdrawal"
    /// The sender is a short code, a name, or a number without its country: nobody can have registered it.
    case notAnAddress = "not_an_address"
    /// A withdrawal of a number or mailbox that nobody has registered. It counts for who registers it later.
    case nothingKnownHere = "nothing_known_here"
    /// A withdrawal where nothing that it ends counted: it had ended before, or was never agreed to. It is recorded all the same.
    case alreadySo = "already_so"

    /// The reasons why a reply has no effect.
    package static let withoutEffect: [ReplyEffect] = allCases.filter { $0 != .withdrawn }
}
