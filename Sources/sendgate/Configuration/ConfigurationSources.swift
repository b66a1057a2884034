import CanonicalJSON
import ConfigurationPages

/// The places a setting may come from, the first that has it winning: flags, the environment, the file.
struct ConfigurationSources {
    private let flags: [Setting: String]
    let environment: [String: String]
    let file: ConfigurationFile
    private(set) var diagnostics: [ConfigurationDiagnostic]

    /// - Parameters:
    ///   - flags: As given on the command line.
    ///   - environment: The process's own; an argument so that tests need not change it.
    init(flags: [Setting: String], environment: [String: String], file: ConfigurationFile) {
        self.flags = flags
        // An empty variable is how a unit file unsets one.
        self.environment = environment.filter { !$0.value.isEmpty }
        self.file = file
        diagnostics = file.diagnostics + Self.misspelled(in: environment)
    }

    /// Variables of ours that are not read because a letter is wrong. Others of the prefix may belong to
    /// other scripts.
    private static func misspelled(in environment: [String: String]) -> [ConfigurationDiagnostic] {
        let known = Setting.allCases.map(\.environmentName)
        return environment.keys.sorted().compactMap { name in
            guard name.hasPrefix(Setting.environmentPrefix), !known.contains(name),
                let near = NearestName.to(name, among: known)
            else { return nil }
            return ConfigurationDiagnostic(
                "is not a setting", at: "environment variable `\(name)`", hint: "did you mean `\(near)`?")
        }
    }

    /// Whether the command line says it.
    func isFlag(_ setting: Setting) -> Bool { flags[setting] != nil }

    /// Where a setting's value stands, for messages.
    func place(of setting: Setting) -> String? {
        if flags[setting] != nil { return "flag `\(Self.flagName(of: setting))`" }
        if environment[setting.environmentName] != nil {
            return "environment variable `\(setting.environmentName)`"
        }
        return file.settings[setting]?.place
    }

    static func flagName(of setting: Setting) -> String {
        "--" + setting.rawValue.replacing("_", with: "-").replacing(".", with: "-")
    }

    mutating func refuse(_ message: String, at place: String?, hint: String? = nil) {
        diagnostics.append(ConfigurationDiagnostic(message, at: place, hint: hint))
    }

    /// The setting's text; `nil` when no source has it.
    func text(_ setting: Setting) -> String? {
        flags[setting] ?? environment[setting.environmentName] ?? file.settings[setting]?.text
    }

    mutating func required(_ setting: Setting, hint: String) -> String {
        if let text = text(setting) { return text }
        refuse(
            "`\(setting.rawValue)` is not set", at: nil,
            hint: "\(hint); set it in the file, or as `\(setting.environmentName)`")
        return ""
    }

    /// An absolute path; `nil` when no source has it.
    mutating func path(_ setting: Setting) -> String? {
        guard let path = text(setting) else { return nil }
        if !path.hasPrefix("/") || path.utf8.contains(0) || path.utf8.count > Setting.textByteCountMax {
            refuse(
                "`\(setting.rawValue)` is `\(path)`, which is no absolute path", at: place(of: setting),
                hint: "write the path from the root, e.g. `/var/lib/sendgate`")
        }
        return path
    }

    mutating func requiredPath(_ setting: Setting, hint: String) -> String {
        _ = required(setting, hint: hint)
        return path(setting) ?? ""
    }

    /// A number within the setting's range; `nil` when no source has it.
    mutating func number(_ setting: Setting) -> Int? {
        guard let range = setting.range else {
            preconditionFailure("`\(setting.rawValue)` was read as a number and is none")
        }
        guard let text = text(setting) else { return nil }
        guard let number = Self.digits(text) else {
            refuse("`\(setting.rawValue)` is `\(text)`, which is no whole number", at: place(of: setting))
            return nil
        }
        guard range.contains(number) else {
            refuse(
                "`\(setting.rawValue)` is \(number), and must be \(range.lowerBound) to \(range.upperBound)",
                at: place(of: setting))
            return nil
        }
        return number
    }

    /// Decimal digits only: no sign, no space, no leading zero.
    static func digits(_ text: String) -> Int? {
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            text == "0" || !text.hasPrefix("0")
        else { return nil }
        return Int(text)
    }
}
