import CommandTerminal
import GateVocabulary

/// A report as one SVG file that needs nothing beside it: no script, no font, no image.
///
/// Drawn 360 units wide with letters of 12, so that it can be read on a phone of 320 points. Colours follow the reader's
/// light or dark setting; every bar has its figure in words beside it or as its title, and as `data-` attributes.
struct ReportChart {
    let text: String

    init(_ report: Report) {
        var drawing = ChartDrawing()
        let since = (report.period.since ?? report.first).map { String($0.rfc3339.prefix(10)) } ?? "–"
        let until = (report.period.until ?? report.last).map { String($0.rfc3339.prefix(16)) } ?? "–"
        drawing.heading("Notifications from \(since) to \(until)Z")
        for alarm in report.alarms { drawing.alarm(alarm) }
        drawing.days(report.days)
        drawing.bars(
            "Accepted by the next hop, the line at 98 %", "accepted", mark: Report.acceptedPerTenThousandMin,
            report.accepted.map { ($0.channel.rawValue, $0.share, nil) })
        drawing.bars(
            "Accepted by providers, the line at 98 %", "accepted_by_provider",
            mark: Report.acceptedPerTenThousandMin,
            report.acceptedByProviders.map { ($0.channel.rawValue, $0.share, nil) })
        drawing.bars(
            "Accepted within the tier's target, the line at 95 %", "in_time",
            mark: Report.inTimePerTenThousandMin,
            report.timeToAccept.map { tier, latency, inTime in
                let target = Report.words(Report.targetMilliseconds(of: tier))
                let median = latency.medianMilliseconds.map { ", half within \(Report.words($0))" } ?? ""
                return (tier.rawValue, inTime, "target \(target)\(median)")
            })
        drawing.bars(
            "Tapped, of the messages handed over", "tap_through",
            report.tapThrough.map { category, share in
                let median = report.timeToOpen.first { $0.category == category }?.latency.medianMilliseconds
                return (
                    category.rawValue, share, median.map { "half of those opened within \(Report.words($0))" }
                )
            })
        drawing.bars(
            "Switched off within 24 hours, of the sends forwarded", "disables_after_send",
            report.disablesAfterSend.map { ($0.category.rawValue, $0.share, nil) })
        if let people = report.people {
            drawing.bars(
                "Opted in for push at the end, of those with a device", "opted_in",
                people.optedIn.filter { $0.channel == .push }.map { ($0.category.rawValue, $0.share, nil) })
        }
        text = drawing.finish(
            title: "Notifications from \(since) to \(until)Z",
            description: Self.summary(of: report))
    }

    /// What the charts say, for a reader who does not see them.
    private static func summary(of report: Report) -> String {
        var parts = ["\(report.decisionCount) sends were decided"]
        for (value, count) in report.decisions.first?.counts ?? [] { parts.append("\(value) \(count)") }
        parts.append("accepted \(report.acceptedInAll.text) of \(report.acceptedInAll.of) messages")
        for (category, share) in report.tapThrough where share.of > 0 {
            parts.append("tapped \(category.rawValue) \(share.text)")
        }
        parts.append(report.alarms.isEmpty ? "no alarm line was crossed" : "alarms: \(report.alarms.count)")
        return parts.joined(separator: "; ") + "."
    }
}

/// Shapes one below the other.
private struct ChartDrawing {
    private static let (width, margin) = (360, 12)
    private static let plotHeight: UInt64 = 120
    /// Bars beside each other; more days are added up.
    private static let dayBarCountMax = 31
    /// Characters of bold letters that fit a line, in the widest of the fonts that systems show for their own.
    private static let (lineCountMax, headingCountMax) = (42, 34)
    /// Where bars without a line end: the least of these that none of them is beyond, in hundredths of a per cent.
    private static let scales: [UInt64] = [100, 500, 1_000, 2_500, 5_000, 10_000]

    private var body = ""
    private var y = 0

    private var plotWidth: Int { Self.width - 2 * Self.margin }

    mutating func heading(_ words: String) {
        y += 8
        for line in Self.wrapped(words, to: Self.headingCountMax) {
            y += 18
            body += "<text class=\"h\" x=\"\(Self.margin)\" y=\"\(y)\">\(Self.escaped(line))</text>\n"
        }
    }

    mutating func alarm(_ words: String) {
        y += 4
        for line in Self.wrapped("alarm: \(words)") {
            y += 16
            body += "<text class=\"a\" x=\"\(Self.margin)\" y=\"\(y)\">\(Self.escaped(line))</text>\n"
        }
    }

    private mutating func title(_ words: String) {
        y += 14
        for line in Self.wrapped(words) {
            y += 16
            body += "<text class=\"t\" x=\"\(Self.margin)\" y=\"\(y)\">\(Self.escaped(line))</text>\n"
        }
    }

    /// Decisions per day, stacked by outcome.
    mutating func days(_ days: [Report.Day]) {
        guard let first = days.first, let last = days.last else { return }
        let spanned = Int((last.start.seconds - first.start.seconds) / 86_400) + 1
        let perBar = (spanned + Self.dayBarCountMax - 1) / Self.dayBarCountMax
        let barCount = (spanned + perBar - 1) / perBar
        var bars = [[Outcome: UInt64]](repeating: [:], count: barCount)
        for day in days {
            let place = Int((day.start.seconds - first.start.seconds) / 86_400) / perBar
            bars[place].merge(day.outcomes) { $0 + $1 }
        }
        let highest = max(1, bars.map { $0.values.reduce(0, +) }.max() ?? 1)
        title(perBar == 1 ? "Sends decided per day" : "Sends decided, \(perBar) days a bar")
        y += 8
        let base = y + Int(Self.plotHeight)
        let step = plotWidth / barCount
        for (place, outcomes) in bars.enumerated() {
            let day = Instant(seconds: first.start.seconds + Int64(place * perBar) * 86_400)
            let name = String(day.rfc3339.prefix(10))
            var below: UInt64 = 0
            for outcome in Outcome.allCases {
                guard let count = outcomes[outcome], count > 0 else { continue }
                // Both edges are rounded, so that bars touch and none is lost in a sum.
                let (low, high) = (below, below + count)
                let top = base - Int(high * Self.plotHeight / highest)
                let bottom = base - Int(low * Self.plotHeight / highest)
                below = high
                body +=
                    "<rect class=\"\(outcome.name)\" x=\"\(Self.margin + place * step)\" y=\"\(top)\" width=\"\(max(1, step - 2))\" height=\"\(max(1, bottom - top))\" data-figure=\"day.\(name).\(outcome.name)\" data-count=\"\(count)\"><title>\(name): \(outcome.name) \(count)</title></rect>\n"
            }
        }
        body +=
            "<line class=\"axis\" x1=\"\(Self.margin)\" y1=\"\(base)\" x2=\"\(Self.width - Self.margin)\" y2=\"\(base)\"/>\n"
        y = base + 16
        body += "<text x=\"\(Self.margin)\" y=\"\(y)\">\(first.name)</text>\n"
        body +=
            "<text class=\"e\" x=\"\(Self.width - Self.margin)\" y=\"\(y)\">highest \(ReportLines.grouped(highest))</text>\n"
        y += 18
        var x = Self.margin
        for outcome in Outcome.allCases {
            body +=
                "<rect class=\"\(outcome.name)\" x=\"\(x)\" y=\"\(y - 9)\" width=\"9\" height=\"9\"/>\n"
            body += "<text x=\"\(x + 13)\" y=\"\(y)\">\(outcome.name)</text>\n"
            x += 20 + 8 * outcome.name.count
        }
    }

    /// One bar for each part of a whole; those of nothing are left out.
    mutating func bars(
        _ words: String, _ figure: String, mark: UInt64? = nil,
        _ rows: [(name: String, share: Share, note: String?)]
    ) {
        let rows = rows.filter { $0.share.of > 0 }
        guard !rows.isEmpty else { return }
        let most = mark == nil ? rows.compactMap(\.share.perTenThousand).max() ?? 0 : 10_000
        let whole = Self.scales.first { $0 >= most } ?? 10_000
        title(whole == 10_000 ? words : "\(words); the bars end at \(whole / 100) %")
        for (name, share, note) in rows {
            let rate = min(share.perTenThousand ?? 0, whole)
            y += 18
            body += "<text x=\"\(Self.margin)\" y=\"\(y)\">\(Self.escaped(name))</text>\n"
            body +=
                "<text class=\"e\" x=\"\(Self.width - Self.margin)\" y=\"\(y)\">\(share.text) of \(ReportLines.grouped(share.of))</text>\n"
            y += 5
            let isBelow = mark.map { rate < $0 } ?? false
            body +=
                "<rect class=\"back\" x=\"\(Self.margin)\" y=\"\(y)\" width=\"\(plotWidth)\" height=\"10\"/>\n"
            body +=
                "<rect class=\"\(isBelow ? "below" : "bar")\" x=\"\(Self.margin)\" y=\"\(y)\" width=\"\(UInt64(plotWidth) * rate / whole)\" height=\"10\" data-figure=\"\(figure).\(name)\" data-part=\"\(share.part)\" data-of=\"\(share.of)\"><title>\(Self.escaped(name)): \(share.part) of \(share.of)</title></rect>\n"
            if let mark {
                let x = Self.margin + Int(UInt64(plotWidth) * mark / 10_000)
                body +=
                    "<line class=\"mark\" x1=\"\(x)\" y1=\"\(y - 2)\" x2=\"\(x)\" y2=\"\(y + 12)\"/>\n"
            }
            y += 10
            if let note {
                y += 14
                body += "<text class=\"n\" x=\"\(Self.margin)\" y=\"\(y)\">\(Self.escaped(note))</text>\n"
            }
        }
    }

    func finish(title: String, description: String) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width) \(y + 16)" width="100%" role="img" aria-labelledby="title desc">
        <title id="title">\(Self.escaped(title))</title>
        <desc id="desc">\(Self.escaped(description))</desc>
        <style>
        svg { max-width: 720px; background: #ffffff; font: 12px system-ui, sans-serif; }
        text { fill: #1b1f24; } .h { font-weight: 600; font-size: 14px; } .t { font-weight: 600; }
        .e { text-anchor: end; } .n { fill: #57606a; } .a { fill: #a40e26; font-weight: 600; }
        .axis, .mark { stroke: #57606a; stroke-width: 1; } .mark { stroke: #1b1f24; stroke-width: 2; }
        .back { fill: #e7eaee; } .bar, .forward { fill: #0b6bcb; } .defer { fill: #7fb5ec; }
        .digest { fill: #8a63d2; } .suppress { fill: #e0a03b; } .reject, .below { fill: #c0392b; }
        @media (prefers-color-scheme: dark) {
        svg { background: #14181d; } text { fill: #e6edf3; } .n { fill: #9aa4af; } .a { fill: #ff8f8f; }
        .axis { stroke: #9aa4af; } .mark { stroke: #e6edf3; } .back { fill: #2a313a; }
        .bar, .forward { fill: #4d9ff0; } .defer { fill: #a9d1f7; } .digest { fill: #b596f0; }
        .suppress { fill: #f0bd62; } .reject, .below { fill: #f0706a; }
        }
        </style>
        \(body)</svg>

        """
    }

    /// Words broken into lines that fit.
    private static func wrapped(_ words: String, to countMax: Int = lineCountMax) -> [String] {
        var lines: [String] = []
        for word in words.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= countMax {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    static func escaped(_ text: String) -> String {
        Terminal.printable(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
    }
}
