import CanonicalJSON
import GateVocabulary

/// The cover page of a bundle (`bundle.yaml`): what it is called, since when it counts, who writes, and its files.
struct CoverPage {
    let name: String
    let version: Int
    let effectiveFrom: CalendarDate
    let isStarter: Bool
    let brand: String
    let languages: ReaderLanguages
    /// Where on the web the places of an app lie, by the app's scheme.
    let appLinks: [String: LinkPrefix]
    let sender: Sender?

    /// - Parameter documents: Every file that is there, which the page has to list.
    init(_ reader: NodeReader, of documents: [String: PolicyNode]) {
        let members = reader.members()
        name = members.text("name", byteCountMax: 128, "What the bundle is called.")
        version = members.integer(
            "version", 1...1_000_000_000, "Rises with every change that is put into force.")
        effectiveFrom = members.date("effective_from", "The first day on which it is to be in force.")
        isStarter = members.boolean(
            "starter", default: false,
            "Whether it is an example to begin with. Remove the line when the pages are your own; what approves them are the signatures."
        )
        let brand = members.required(
            "brand", hint: "the company's name, as its customers know it",
            "Who writes, as recipients know the company: in front of every text message, every subject, and every text that says nothing else."
        )
        self.brand = brand?.checkedText(byteCountMax: 32, by: PlainTextRule(allowing: [.domainNames])) ?? ""
        languages =
            members.optional("languages", "In which of its languages the bundle writes to readers of others.")
            .map { ReaderLanguages($0) } ?? .english
        let appLinks = members.optional(
            "app_links",
            "Where on the web an app answers as well (universal links, app links), by its scheme: a link below one is the same place as with the scheme."
        )
        self.appLinks = appLinks.map(Self.appLinks) ?? [:]
        sender = members.optional(
            "sender",
            "Who answers for what is sent, by law: stands below every e-mail that can be unsubscribed from."
        ).map { Sender($0.named("sender")) }
        let files = members.required(
            "files",
            "Every other file of the bundle, relative to its folder. The folder schema/ is for editors and is not listed."
        )
        if let files { Self.check(listing: files, against: documents) }
        members.ignoreRationale()
        members.refuseOthers()
    }

    private static func appLinks(_ reader: NodeReader) -> [String: LinkPrefix] {
        let members = reader.members()
        var places: [String: LinkPrefix] = [:]
        for (scheme, value) in members.others(.schemes, countMax: 16) {
            let text = value.shown(as: .text(.webPlaceOfPage)).text(byteCountMax: LinkPrefix.byteCountMax)
            if LinkPrefix(inApp: "\(scheme)://") == nil {
                value.problem(
                    "is about `\(scheme)`, which is no app's scheme",
                    hint: "write it as in `drop://`, without `://`")
            }
            guard let place = LinkPrefix(onWeb: text), !text.hasSuffix("/") else {
                if !text.isEmpty {
                    value.problem(
                        "is `\(text)`, which is no place on the web",
                        hint: "https and a whole host of the company's own, such as https://app.getdrop.no")
                }
                continue
            }
            places[scheme] = place
        }
        members.refuseOthers()
        return places
    }

    /// A file that is there but not listed, or listed but not there, is how a half-finished edit looks.
    private static func check(listing: NodeReader, against documents: [String: PolicyNode]) {
        var listed: Set<String> = []
        for element in listing.elements(countMin: 1, countMax: 20_000) {
            let file = element.shown(as: .text(.pathOfPage)).text(byteCountMax: 256)
            if !listed.insert(file).inserted { element.problem("lists `\(file)` twice") }
            if documents[file] == nil, !file.isEmpty {
                element.problem("lists `\(file)`, which is missing", hint: "add the file or remove the line")
            }
        }
        for file in documents.keys where file != "bundle.yaml" && !listed.contains(file) {
            listing.list.add(
                PolicyDiagnostic(
                    file: file, message: "is not listed in `files` of bundle.yaml",
                    hint: "list it there, or move it out of the folder"))
        }
    }
}

extension ReaderLanguages {
    init(_ reader: NodeReader) {
        let members = reader.members()
        func language(_ reader: NodeReader?) -> LanguageTag {
            guard
                let text = reader?.shown(as: .text(.localeOfPage)).text(
                    byteCountMax: LanguageTag.byteCountMax)
            else {
                return .last
            }
            guard let tag = LanguageTag(text), tag.description == text else {
                if !text.isEmpty {
                    reader?.problem("is `\(text)`, which is no language tag", hint: Self.tagHint)
                }
                return .last
            }
            return tag
        }
        let first = language(
            members.required(
                "first",
                "The language for readers of one that the bundle does not have, and for readers of unknown language."
            ))
        var alsoRead: [String: LanguageTag] = [:]
        let table = members.optional(
            "also_read",
            "Readers of the left language read the right one as well, and get it where the bundle has not their own."
        )?.members()
        for (key, value) in table?.others(.locales, countMax: Self.alsoReadCountMax) ?? [] {
            if LanguageTag(key)?.description != key {
                value.problem("is about `\(key)`, which is no language tag", hint: Self.tagHint)
            }
            alsoRead[key] = language(value)
        }
        members.refuseOthers()
        self.init(first: first, alsoRead: alsoRead)
    }

    private static let tagHint = "write it as RFC 5646 does, e.g. `nb` or `sr-Latn`"
}

/// The company that answers for what is sent, as the law has it named in a commercial e-mail: 15 U.S.C. 7704(a)(5)(A)(iii)
/// and Directive 2000/31/EC Art. 5(1)(a) and (b).
package struct Sender: Hashable, Sendable {
    /// The registered name.
    package var name: String
    /// A postal address on one line, with the country.
    package var postalAddress: String

    init(_ reader: NodeReader) {
        let members = reader.members()
        func line(_ member: String, byteCountMax: Int, _ means: String) -> String {
            // A postcode and a house number may have as many digits as a telephone number.
            members.required(member, means)?.checkedText(
                byteCountMax: byteCountMax, by: PlainTextRule(allowing: [.domainNames, .phoneNumbers])) ?? ""
        }
        name = line("name", byteCountMax: 128, "The registered name of the company.")
        postalAddress = line(
            "postal_address", byteCountMax: 256, "Its postal address on one line, with the country.")
        members.refuseOthers()
    }
}
