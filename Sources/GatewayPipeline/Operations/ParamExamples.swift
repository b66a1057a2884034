package import GateVocabulary

/// What an example of a param reads as, by the words of the param's name.
package enum ParamExamples {
    /// The words of a name (`country_name` has two), and what a text of that name is. The first row counts whose words are
    /// all in a name.
    private static let texts: [(words: [String], text: String)] = [
        (["country"], "Serbia"), (["from", "currency"], "NOK"), (["to", "currency"], "RSD"),
        (["currency"], "NOK"), (["rate"], "10.32"), (["device"], "Pixel 9"), (["order", "number"], "A-1024"),
        (["number"], "A-1024"), (["period"], "October 2026"), (["headline"], "No fees this week"),
        (["feature"], "Instant transfers"), (["goal"], "A month without gambling"),
        (["venue"], "Casino Admiral"),
        (["partner"], "Norden Insurance"), (["granted", "to"], "Budget Helper"),
        (["biller"], "Hafslund Power"),
        (["merchant"], "Kaffebrenneriet"), (["payee"], "Kaffebrenneriet"), (["bank"], "Sparebanken"),
        (["account"], "Savings"), (["app"], "Drop"), (["first", "name"], "Ahmad"),
        (["what", "happened"], "Some of your contact details were seen by somebody else."),
        (["what", "may", "follow"], "Somebody may write to you and pretend to be us."),
        (["what", "we", "do"], "We closed the gap and told the supervisory authority."),
        (["what", "to", "do"], "Open the app and choose a new password."),
        (["contact"], "Write to our data protection officer in the app."), (["author"], "Ana Horvat"),
        (["commenter"], "Ana Horvat"), (["liker"], "Ana Horvat"), (["sender"], "Ahmad Karimi"),
        (["recipient"], "Ahmad Karimi"), (["name"], "Ahmad Karimi"),
    ]

    private static let numbers: [(words: [String], number: Int64)] = [
        (["count"], 28), (["days"], 3), (["percent"], 72),
    ]

    /// - Returns: A text that fits the param; `nil` where none does. Of a name without a row it says only that it is an example.
    package static func text(of name: String, byteCountMax: Int, by rule: PlainTextRule) -> String? {
        let own = texts.first { has($0.words, name) }?.text
        return [own, "An example", "x"].compactMap(\.self).first { text in
            text.utf8.count <= byteCountMax && rule.violation(in: text) == nil
        }
    }

    package static func number(of name: String, in bounds: ClosedRange<Int64>) -> Int64 {
        let own = numbers.first { has($0.words, name) }?.number ?? 0
        return min(max(own, bounds.lowerBound), bounds.upperBound)
    }

    /// `sender_name` and `senderName` have the words `sender` and `name`.
    private static func has(_ words: [String], _ name: String) -> Bool {
        var parts = [""]
        for character in name {
            if character == "_" || character.isUppercase { parts.append("") }
            if character != "_" { parts[parts.count - 1] += character.lowercased() }
        }
        return words.allSatisfy(parts.contains)
    }
}
