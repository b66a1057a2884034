import GateVocabulary

/// Values that several pages have.
extension NodeReader {
    /// A country, or a subdivision of one.
    func region() -> RegionCode? {
        if let recorder {
            recorder.note(.regionOfPage)
            return nil
        }
        return region(named: text(byteCountMax: 6))
    }

    /// - Parameter code: The value's text, or the key that leads to it.
    func region(named code: String) -> RegionCode? {
        let region = RegionCode(code)
        if region == nil { problem("is not an ISO 3166 code", hint: "write it as \"US\" or \"US-CA\"") }
        return region
    }

    /// Whether a type of the id is in the registry is for the checks across pages.
    func typeID(byteCountMax: Int = 128) -> TypeID {
        TypeID(shown(as: .typeIDOfPage).text(byteCountMax: byteCountMax))
    }

    /// A list of ids, or one id standing for a list of one.
    func typeIDs() -> [TypeID] {
        let most = Self.textByteCountMax
        return oneOf(
            text: { [$0.typeID(byteCountMax: most)] },
            else: { $0.elements().map { $0.typeID(byteCountMax: most) } })
    }

    /// Complains of a text that a message may not have.
    func check(_ text: String, against rule: PlainTextRule, hint: String? = nil) {
        guard let violation = rule.violation(in: text) else { return }
        problem(violation.replacing("expected", with: "must have"), hint: hint)
    }

    /// A text that is written as it stands, by a rule; told as it is written where it breaks the rule.
    func checkedText(byteCountMax: Int, by rule: PlainTextRule) -> String {
        let text = text(byteCountMax: byteCountMax)
        do throws(TextViolation) {
            return try rule.checked(text).text
        } catch {
            problem(error.expectation.replacing("expected", with: "must have"))
            return text
        }
    }
}
