public import GateVocabulary

/// A closed list of values whose place in the declaration is what rows and columns hold: an enum without payloads.
///
/// - Warning: Append only. Moving or removing a value changes the meaning of every row ever written; `StoredCodeTests` pins each list.
@usableFromInline
package protocol StoredCode: Equatable, Sendable {
    /// Every value, in the order of the declaration.
    static var codes: [Self] { get }
}

extension StoredCode where Self: CaseIterable, AllCases == [Self] {
    @inlinable
    package static var codes: [Self] { allCases }
}

extension StoredCode {
    /// The place. An enum without payloads lies as a byte that is the place of its value (`StoredCodeTests`), and one with a single
    /// value has no bits at all; the bit cast checks the size. A search of the list compares through a call for each value.
    @inlinable
    package var code: Int64 { MemoryLayout<Self>.size == 0 ? 0 : Int64(unsafeBitCast(self, to: UInt8.self)) }

    @inlinable
    package init?(code: Int64) {
        let values = Self.codes
        guard code >= 0, code < values.count else { return nil }
        self = values[Int(code)]
    }
}

extension RowWriter {
    @inlinable
    package mutating func put<Code: StoredCode>(_ value: Code) {
        put(byte: UInt8(truncatingIfNeeded: value.code))
    }
    @inlinable
    package mutating func put<Code: StoredCode>(optional value: Code?) { put(value) { $0.put($1) } }
}

extension RowReader {
    package mutating func code<Code: StoredCode>(_ type: Code.Type = Code.self) throws(DamagedRow) -> Code {
        guard let value = Code(code: Int64(try byte())) else { throw .unknown("\(Code.self)") }
        return value
    }
}

extension StoredValue where Self: StoredCode {
    package func write(row: inout RowWriter) { row.put(self) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Self { try row.code() }
}

extension AgeFact: StoredCode {}
extension BodyForm: StoredCode {}
extension Category: StoredCode {}
extension Channel: StoredCode {}
extension ConsentMethod: StoredCode {
    @usableFromInline package static let codes = recorded
}
extension DriftAction: StoredCode {}
extension DriftKind: StoredCode {}
extension Interruption: StoredCode {}
extension OSPermission: StoredCode {}
extension Platform: StoredCode {}
/// Those of the gateway are none that a caller may assert, which ``GateVocabulary/PreferenceSource/allCases`` are.
extension PreferenceSource: StoredCode {
    package static let codes =
        allCases + [.driftAudit, .stateAudit, .consent, .reply, .sharedAddress, .restore]
}
extension PreferenceState: StoredCode {}
extension PrivacyLevel: StoredCode {}
extension PushProvider: StoredCode {}
extension RegionSource: StoredCode {}
extension ReplyEffect: StoredCode {}
extension Tier: StoredCode {}
extension ConsentRecord.State: StoredCode {}
extension PermissionPrompt.Choice: StoredCode {}
