/// Words in front of digits that say what the digits are.
///
/// No list of words is complete. So the words of calling only add numbers: of fewer digits than ``NumberSearch/digitCountMin``. A
/// word for a reference or a version hides digits, and only those in the form of one (SG-0055).
enum NumberWords {
    /// Asks a reader to call or to text.
    static let asking = words(
        """
        call calling dial ring ringe sms txt text whatsapp viber
        opkald messa nazovi nazovite pozovi pozovite zovi zovite telefono telefonoje telefononi
        anrufen anruf ruf rufe rufen wähle wählen soita soittakaa
        appelez appeler appelle appel composez llame llama llamar llámenos marque ligue ligar chiama chiami chiamare bel bellen
        zadzwoń dzwoń zadzwonić skambinkite sunați sunati ara arayın arayin gọi goi tumawag tawagan
        звоните позвоните позвони звони телефонуйте зателефонуйте дзвоніть подзвоніть
        اتصل
        """)

    /// Names a number that is called.
    private static let naming = words(
        """
        tel tlf tfn tfno tlfn tlfnr telnr telefon telefonen telefonnr telefonnummer phone telephone ph mob mobnr fax
        hotline helpline hjelpetelefon puh puhelin tél téléphone teléfono telefone telefoni telefonas telefoon telefonu
        тел телефон هاتف
        """)

    static let calling = asking.union(naming)

    /// The same in scripts without a blank between words, where any letters may stand before it.
    static let unspaced = ["电话", "電話", "致电", "致電", "拨打", "撥打", "전화", "โทร"]

    /// Leads from a word of calling to its digits: `ring oss på`, `call us now at`.
    static let between = words(
        """
        at free me my nbr no now number on only our the to toll us your
        bare gratis kun meg mig nå nr nummer nummeret os oss på straks til vår i
        an auf bei die den der jetzt sie uns unter
        à al allo au aux ci el il la le lo los nu numéro numero número nos o ons op para sur
        broj na numer pod numeron në numarayı bizi numeriu numărul số numeroon
        на номер за по رقم
        """)

    /// Names a reference, which may have a year in it: `Faktura 2026-00123`.
    static let reference = words(
        """
        account agreement application booking case claim contract customer doc id inv invoice no nr number order policy po ref
        reference so ticket
        avtale bestilling bilag faktura fakturanr fakturanummer journalnr konto kunde ordre ordrenr ordrenummer polise referanse sak
        saksnr saksnummer søknad
        broj narudžba predmet račun ugovor çështje faturë porosi
        auftrag bestellung rechnung rechnungsnummer vertrag vorgang ärende order avtal ordernr
        commande contrat dossier facture factura pedido fatura encomenda fattura ordine pratica factuur dossiernummer
        zamówienie sprawa fv lasku tilaus sąskaita comandă sipariş
        заказ счёт счет договор дело замовлення рахунок справа
        """)

    /// A program or a system with versions, or a word for them.
    static let versioned = words(
        """
        android brave build chrome chromeos chromium edge firefox harmonyos hyperos internet ios ipados linux macos miui nt opera
        safari tvos ubuntu ui v version versión versio versione versjon vivaldi watchos webkit webview wersja windows
        """)

    /// How the words of calling are found among the words of a text: by what ``hash(_:_:)`` makes of their letters.
    static let callingHashes = hashes(calling)
    static let askingHashes = hashes(asking)

    private static func hashes(_ words: Set<String>) -> Set<UInt64> {
        Set(words.map { TextFolding.folded($0).reduce(0) { hash($0, $1) } })
    }

    static func hash(_ hash: UInt64, _ letter: Unicode.Scalar) -> UInt64 {
        let letter = TextFolding.withoutMark(letter)
        let lower =
            letter.isASCII
            ? letter.value | 0x20 : letter.properties.lowercaseMapping.unicodeScalars.first?.value ?? 0
        return hash &* 0x100_0000_01B3 &+ UInt64(lower)
    }

    private static func words(_ table: String) -> Set<String> {
        Set(table.split(whereSeparator: \.isWhitespace).map(spelled))
    }

    /// A word as the lists have it: without capitals and marks, so that composed and decomposed letters are one, and a Turkish `ı`
    /// and `I` too.
    static func spelled(_ word: some StringProtocol) -> String {
        String(
            String.UnicodeScalarView(TextFolding.folded(word.lowercased()).map(TextFolding.withoutMark)))
    }
}
