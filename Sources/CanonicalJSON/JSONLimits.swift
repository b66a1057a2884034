/// How much of a document the reader accepts. Counted before anything is built from it.
package struct JSONLimits: Hashable, Sendable {
    /// Bytes of the whole document.
    package var byteCountMax: Int
    /// Arrays and objects inside one another; a lone number has depth 0. Bounds the reader's recursion.
    package var depthMax: Int
    /// Members of one object, or elements of one array.
    package var memberCountMax: Int
    /// Whether `\u0000` inside a text is refused. On by default: a NUL ends texts early in C libraries,
    /// SQLite's shell and several push services, so the same text would be two texts.
    package var refusesNUL: Bool
    /// Whether a number that is no integer of ``CanonicalJSON/integerMax`` at most is read as the text that stands there. Off by
    /// default, when such a number is refused; on for the exports of other systems.
    package var readsOtherNumbersAsTexts: Bool

    package init(
        byteCountMax: Int = 65_536, depthMax: Int = 32, memberCountMax: Int = 1_024, refusesNUL: Bool = true,
        readsOtherNumbersAsTexts: Bool = false
    ) {
        self.byteCountMax = byteCountMax
        self.depthMax = depthMax
        self.memberCountMax = memberCountMax
        self.refusesNUL = refusesNUL
        self.readsOtherNumbersAsTexts = readsOtherNumbersAsTexts
    }

    /// One request or one line of a stream: 64 KiB.
    package static let request = JSONLimits()
    /// One entry of the audit trail: 65,535 bytes, what an entry bundle's length field can say.
    package static let entry = JSONLimits(byteCountMax: 65_535)
    /// A document an operator owns, such as an archived policy bundle: 16 MiB.
    package static let document = JSONLimits(
        byteCountMax: 16 * 1_024 * 1_024, depthMax: 64, memberCountMax: 65_536)
}
