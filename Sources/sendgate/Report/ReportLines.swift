import CommandTerminal
import GateVocabulary

/// A report as a table of at most 100 columns.
struct ReportLines {
    private(set) var lines: [String] = []
    private let isColoured: Bool

    /// Columns of a name, of a count, and of each column after it.
    private static let (nameWidth, countWidth, columnWidth) = (30, 13, 13)

    init(_ report: Report, isColoured: Bool) {
        self.isColoured = isColoured
        guard report.entryCount > 0 else {
            lines = ["nothing was recorded in this period"]
            return
        }
        let since = (report.period.since ?? report.first)?.rfc3339 ?? "?"
        let until = (report.period.until ?? report.last)?.rfc3339 ?? "?"
        lines.append("from \(since) to \(until), \(Self.grouped(report.entryCount)) entries")
        for alarm in report.alarms { lines.append(coloured("alarm: \(alarm)", "31")) }
        addDecisions(report)
        addMessages(report)
        addPeople(report)
    }

    private mutating func addDecisions(_ report: Report) {
        head("decisions", "sends", "share")
        row("all", report.decisionCount, "")
        for (label, counts) in report.decisions {
            lines.append("  by \(label)")
            for (value, count) in counts {
                row("  \(value)", count, Share(part: count, of: report.decisionCount).text)
            }
        }
        guard !report.redecisions.isEmpty else { return }
        head("waiting messages decided again", "messages")
        for (value, count) in report.redecisions { row(value, count) }
    }

    private mutating func addMessages(_ report: Report) {
        head("hand-overs", "messages", "share")
        for (value, count) in report.handOvers {
            row(value, count, Share(part: count, of: report.acceptedInAll.of).text)
        }
        head("accepted by the next hop", "accepted", "of", "share", "alarm")
        for (channel, share) in report.accepted where share.of > 0 {
            row(channel.rawValue, share.part, Self.grouped(share.of), share.text, "below 98 %")
        }
        head("time to accept", "accepted", "median", "90 %", "target", "in time")
        for (tier, latency, inTime) in report.timeToAccept where latency.count > 0 {
            row(
                tier.rawValue, latency.count, Self.words(latency.medianMilliseconds),
                Self.words(latency.p90Milliseconds), Report.words(Report.targetMilliseconds(of: tier)),
                inTime.text)
        }
        if !report.receipts.isEmpty {
            head("receipts", "reports")
            for (value, count) in report.receipts { row(value, count) }
            head("accepted by providers", "accepted", "of", "share", "alarm")
            for (channel, share) in report.acceptedByProviders where share.of > 0 {
                row(channel.rawValue, share.part, Self.grouped(share.of), share.text, "below 98 %")
            }
        }
        head("tap-through", "tapped", "handed over", "share")
        for (category, share) in report.tapThrough where share.of > 0 {
            row(category.rawValue, share.part, Self.grouped(share.of), share.text)
        }
        head("time to open", "opened", "median", "90 %")
        for (category, latency) in report.timeToOpen where latency.count > 0 {
            row(
                category.rawValue, latency.count, Self.words(latency.medianMilliseconds),
                Self.words(latency.p90Milliseconds))
        }
        guard !report.unreached.isEmpty else { return }
        head("mandatory notices that reached nobody", "times")
        for (value, count) in report.unreached { row(value, count) }
    }

    private mutating func addPeople(_ report: Report) {
        if !report.disables.isEmpty {
            head("categories switched off", "times")
            for (value, count) in report.disables { row(value, count) }
            head("within 24 hours of a send", "times", "forwarded", "share")
            for (category, share) in report.disablesAfterSend where share.of > 0 || share.part > 0 {
                row(category.rawValue, share.part, Self.grouped(share.of), share.text)
            }
        }
        guard let people = report.people else { return }
        head("opted in at the end", "persons", Channel.allCases.map(\.rawValue))
        row("all", people.count)
        for category in Category.allCases {
            let shares = people.optedIn.filter { $0.category == category }
            row(category.rawValue, nil, shares.map(\.share.text))
        }
    }

    mutating func add(_ present: PresentFigures) {
        lines.append("")
        lines.append(coloured("now", "1"))
        for (_, what, value) in present.rows { lines.append(Self.line("  \(what)", value, [])) }
    }

    // MARK: Columns

    private mutating func head(_ title: String, _ count: String, _ columns: String...) {
        head(title, count, columns)
    }

    private mutating func head(_ title: String, _ count: String, _ columns: [String]) {
        lines.append("")
        lines.append(coloured(Self.line(title, count, columns), "1"))
    }

    private mutating func row(_ name: String, _ count: UInt64?, _ columns: String...) {
        row(name, count, columns)
    }

    private mutating func row(_ name: String, _ count: UInt64?, _ columns: [String]) {
        lines.append(Self.line("  \(Terminal.printable(name))", count.map(Self.grouped) ?? "", columns))
    }

    private static func line(_ name: String, _ count: String, _ columns: [String]) -> String {
        var line = name
        var end = nameWidth
        for (column, cell) in ([count] + columns).enumerated() {
            end += column == 0 ? countWidth : columnWidth
            // Names of types and callers may be as long as they like; numbers stay apart from them.
            line += String(repeating: " ", count: max(cell.isEmpty ? 0 : 2, end - line.count - cell.count))
            line += cell
        }
        while line.last == " " { line.removeLast() }
        return line
    }

    private func coloured(_ text: String, _ code: String) -> String {
        isColoured ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private static func words(_ milliseconds: Int64?) -> String { milliseconds.map(Report.words) ?? "–" }

    /// `12,345`.
    static func grouped(_ count: UInt64) -> String {
        var digits = Array(String(count))
        var place = digits.count - 3
        while place > 0 {
            digits.insert(",", at: place)
            place -= 3
        }
        return String(digits)
    }
}
