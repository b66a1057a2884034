package import GateVocabulary

/// The texts of the pages in one language. A kind and a channel are whole phrases, so that no language has to inflect
/// them. The only placeholder is ``timePlace``.
package struct PageTexts: Hashable, Sendable {
    /// A BCP 47 tag, for `lang`.
    package var language: String
    var from: String
    var kind: String
    var categories: [Category: String]
    var channels: [Channel: String]
    var askTitle: String
    var ask: String
    var stop: String
    var doneTitle: String
    var done: String
    /// Has ``timePlace`` once.
    var undoHint: String
    var undo: String
    var undone: String
    var tooLate: String
    /// What an undo is told where the messages are on already: it was taken back before, in another tab or by a double click.
    var alreadyOn: String
    var settings: String
    var unknownTitle: String
    var unknown: String
    var busyTitle: String
    var busy: String
    var wrongTitle: String
    var wrong: String

    /// Stands for a time of day.
    static let timePlace = "{time}"

    /// Every text, for a check that none is missing.
    package var all: [String] {
        [
            language, from, kind, askTitle, ask, stop, doneTitle, done, undoHint, undo, undone, tooLate,
            alreadyOn, settings,
            unknownTitle, unknown, busyTitle, busy, wrongTitle, wrong,
        ] + Category.allCases.map { categories[$0] ?? "" } + Channel.allCases.map { channels[$0] ?? "" }
    }

    /// By language.
    package static let byLanguage: [String: PageTexts] = Dictionary(
        uniqueKeysWithValues: [english, bosnian, norwegian, albanian].map { ($0.language, $0) })

    /// The texts in the first language that a reader of `wishes` is written to in and that has them.
    package static func `for`(_ wishes: [String?], under languages: ReaderLanguages) -> PageTexts {
        languages.candidates(for: wishes).lazy.compactMap { byLanguage[$0.description] }.first ?? english
    }

    private static let english = PageTexts(
        language: "en", from: "From", kind: "Messages",
        categories: [
            .marketing: "Offers and news", .social: "Activity of other people",
            .transactional: "Payments and account", .security: "Security",
        ],
        channels: [.push: "by push", .email: "by e-mail", .sms: "by text message"],
        askTitle: "Unsubscribe", ask: "Do you want to stop getting these messages here?",
        stop: "Stop these messages", doneTitle: "You are unsubscribed",
        done: "You will not get these messages here any more.", undoHint: "You can undo this until {time}.",
        undo: "Undo", undone: "Undone. These messages are switched on again, as before.",
        tooLate: "This cannot be undone now. You can switch the messages on again in the app.",
        alreadyOn: "There is nothing to undo: these messages are switched on.",
        settings: "All notification settings", unknownTitle: "This link does not work",
        unknown:
            "It may be incomplete, or it does not work any more. Open the link from the newest message, or change your notifications in the app.",
        busyTitle: "Please try again",
        busy: "The page is busy, and nothing was changed. Try again in a minute.",
        wrongTitle: "That did not work", wrong: "Nothing was changed. Open the link from the message again.")

    private static let bosnian = PageTexts(
        language: "bs", from: "Pošiljalac", kind: "Poruke",
        categories: [
            .marketing: "Ponude i novosti", .social: "Aktivnosti drugih ljudi",
            .transactional: "Plaćanja i račun", .security: "Sigurnost",
        ],
        channels: [.push: "kao push obavijest", .email: "e-poštom", .sms: "SMS-om"],
        askTitle: "Odjava", ask: "Želite li prestati primati ove poruke ovdje?",
        stop: "Zaustavi ove poruke", doneTitle: "Odjavljeni ste",
        done: "Ovdje više nećete primati ove poruke.",
        undoHint: "Odjavu možete poništiti do {time}.",
        undo: "Poništi", undone: "Poništeno. Ove su poruke ponovo uključene, kao i prije.",
        tooLate: "Odjava se sada ne može poništiti. Poruke možete ponovo uključiti u aplikaciji.",
        alreadyOn: "Nema šta da se poništi: ove su poruke uključene.",
        settings: "Sve postavke obavijesti", unknownTitle: "Ovaj link ne radi",
        unknown:
            "Možda nije potpun ili više ne važi. Otvorite link iz najnovije poruke ili promijenite obavijesti u aplikaciji.",
        busyTitle: "Pokušajte ponovo",
        busy: "Stranica je zauzeta i ništa nije promijenjeno. Pokušajte ponovo za minutu.",
        wrongTitle: "Nije uspjelo", wrong: "Ništa nije promijenjeno. Ponovo otvorite link iz poruke.")

    private static let norwegian = PageTexts(
        language: "nb", from: "Avsender", kind: "Meldinger",
        categories: [
            .marketing: "Tilbud og nyheter", .social: "Andres aktivitet",
            .transactional: "Betalinger og konto", .security: "Sikkerhet",
        ],
        channels: [.push: "som push-varsel", .email: "på e-post", .sms: "på SMS"],
        askTitle: "Meld deg av", ask: "Vil du slutte å få disse meldingene her?",
        stop: "Stopp disse meldingene", doneTitle: "Du er meldt av",
        done: "Du får ikke disse meldingene her lenger.", undoHint: "Du kan angre til kl. {time}.",
        undo: "Angre", undone: "Angret. Disse meldingene er slått på igjen, som før.",
        tooLate: "Dette kan ikke angres nå. Du kan slå på meldingene igjen i appen.",
        alreadyOn: "Det er ingenting å angre: Disse meldingene er slått på.",
        settings: "Alle varslingsinnstillinger", unknownTitle: "Denne lenken virker ikke",
        unknown:
            "Den kan være ufullstendig, eller den virker ikke lenger. Åpne lenken fra den nyeste meldingen, eller endre varslene i appen.",
        busyTitle: "Prøv igjen", busy: "Siden er opptatt, og ingenting ble endret. Prøv igjen om et minutt.",
        wrongTitle: "Det gikk ikke", wrong: "Ingenting ble endret. Åpne lenken fra meldingen på nytt.")

    private static let albanian = PageTexts(
        language: "sq", from: "Dërguesi", kind: "Mesazhet",
        categories: [
            .marketing: "Oferta dhe lajme", .social: "Aktiviteti i të tjerëve",
            .transactional: "Pagesat dhe llogaria", .security: "Siguria",
        ],
        channels: [.push: "me njoftim push", .email: "me e-mail", .sms: "me SMS"],
        askTitle: "Çregjistrohu", ask: "A doni të mos merrni më këto mesazhe këtu?",
        stop: "Ndali këto mesazhe", doneTitle: "U çregjistruat",
        done: "Nuk do të merrni më këto mesazhe këtu.", undoHint: "Mund ta zhbëni këtë deri në orën {time}.",
        undo: "Zhbëje", undone: "U zhbë. Këto mesazhe janë aktivizuar përsëri, si më parë.",
        tooLate: "Kjo nuk mund të zhbëhet tani. Mesazhet mund t'i aktivizoni përsëri në aplikacion.",
        alreadyOn: "Nuk ka asgjë për të zhbërë: këto mesazhe janë të aktivizuara.",
        settings: "Të gjitha cilësimet e njoftimeve", unknownTitle: "Kjo lidhje nuk funksionon",
        unknown:
            "Mund të jetë e paplotë, ose nuk funksionon më. Hapni lidhjen nga mesazhi më i ri, ose ndryshoni njoftimet në aplikacion.",
        busyTitle: "Provoni përsëri",
        busy: "Faqja është e zënë dhe asgjë nuk u ndryshua. Provoni përsëri pas një minute.",
        wrongTitle: "Nuk funksionoi", wrong: "Asgjë nuk u ndryshua. Hapeni përsëri lidhjen nga mesazhi.")
}
