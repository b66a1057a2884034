/// A word in Latin letters, as its readers transliterate it: Cyrillic by the Serbian alphabet and, for what that lacks, ISO 9
/// without marks; Greek by ELOT 743. Only words of a closed list are compared in it, so one spelling for several sounds
/// does no harm.
enum LatinLetters {
    /// - Parameter letters: Lower-case letters and digits. What is of another script stays as it is.
    static func spelling(_ letters: String) -> String {
        guard letters.utf8.contains(where: { $0 >= 0x80 }) else { return letters }
        return letters.unicodeScalars.reduce(into: "") { spelled, scalar in
            if let latin = table[scalar] {
                spelled += latin
            } else {
                spelled.unicodeScalars.append(scalar)
            }
        }
    }

    private static let table: [Unicode.Scalar: String] = [
        "а": "a", "б": "b", "в": "v", "г": "g", "д": "d", "ђ": "d", "е": "e", "ж": "z", "з": "z", "и": "i",
        "ј": "j", "к": "k", "л": "l", "љ": "lj", "м": "m", "н": "n", "њ": "nj", "о": "o", "п": "p", "р": "r",
        "с": "s", "т": "t", "ћ": "c", "у": "u", "ф": "f", "х": "h", "ц": "c", "ч": "c", "џ": "dz", "ш": "s",
        "ѓ": "g", "ќ": "k", "ѕ": "dz", "і": "i", "ї": "i", "є": "e", "ґ": "g", "ё": "e", "й": "i", "щ": "sc",
        "ъ": "", "ы": "y", "ь": "", "э": "e", "ю": "ju", "я": "ja", "ў": "u",
        "α": "a", "β": "v", "γ": "g", "δ": "d", "ε": "e", "ζ": "z", "η": "i", "θ": "th", "ι": "i", "κ": "k",
        "λ": "l", "μ": "m", "ν": "n", "ξ": "x", "ο": "o", "π": "p", "ρ": "r", "σ": "s", "ς": "s", "τ": "t",
        "υ": "y", "φ": "f", "χ": "ch", "ψ": "ps", "ω": "o",
        "ά": "a", "έ": "e", "ή": "i", "ί": "i", "ό": "o", "ύ": "y", "ώ": "o", "ϊ": "i", "ϋ": "y",
    ]
}
