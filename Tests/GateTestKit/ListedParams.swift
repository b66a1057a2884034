package import GateVocabulary
package import PayloadComposition

/// Params that are given one by one.
package struct ListedParams: ParamValues {
    private let values: [(name: String, value: ParamValue)]
    package let language: LanguageTag
    package let utcOffsetSeconds: Int? = nil
    package let hasPlainNumbers: Bool

    package init(
        _ values: [(name: String, value: ParamValue)], in language: LanguageTag, hasPlainNumbers: Bool = false
    ) {
        self.values = values
        self.language = language
        self.hasPlainNumbers = hasPlainNumbers
    }

    package subscript(name: String) -> ParamValue? { values.first { $0.name == name }?.value }
}
