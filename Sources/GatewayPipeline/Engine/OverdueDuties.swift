import GateSteps

extension Batch {
    /// Raises the alarm for duties whose time is over, at most ``overdueDutyCountMax`` at a time.
    ///
    /// - Returns: How many there were; ask again until there is none.
    package func raiseOverdueDuties() throws -> Int {
        let now = try step { try $0.now() }
        let overdue = try overdueDuties(at: now, limit: Self.overdueDutyCountMax)
        for record in overdue {
            try step { step in
                // An alarm is raised once; a duty that is done by letter is done outside of the gateway.
                step.memory.removeDuty(record.duty, of: record.subject)
                guard record.state == .owed else { return }
                try step.raiseUnreached(
                    record.type, of: record.send, by: record.caller, to: record.subject,
                    mustGoBy: record.mustGoBy, within: record.within, at: now)
            }
        }
        return overdue.count
    }

    private static let overdueDutyCountMax = 256
}
