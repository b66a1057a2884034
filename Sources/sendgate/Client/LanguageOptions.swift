import ArgumentParser
import CanonicalJSON
import GateRecords
import WireProtocol

/// In which language a decision is explained. `--locale` is taken: it is the language of a send's own text.
struct LanguageOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The language of the explanation: one of the bundle's, else English.", valueName: "tag"))
    var language: String?

    func validate() throws {
        guard let language, !TextRule.locale.accepts(language) else { return }
        throw ValidationError("`\(language)` is not \(TextRule.locale.expectation)")
    }

    /// For the end of a target; a tag has nothing to encode.
    var query: String { language.map { "?locale=\($0)" } ?? "" }
}
