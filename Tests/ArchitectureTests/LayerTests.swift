import Foundation
import Testing

/// The modules lie on layers, and a module imports lower layers only. The build flag
/// `--explicit-target-dependency-import-check` misses what comes in transitively; this reads every `import`.
@Suite struct LayerTests {
    /// Module → layer. A module may import modules of lower layers only.
    static let layers: [String: Double] = [
        // Layer 0 has one exception: every word of the vocabulary has one canonical spelling, so the vocabulary imports
        // the JSON it is spelled in (decision SG-0002).
        "CIDN2": -1, "COpenSSL": -1, "CSQLite": -1, "CSodium": -1,
        "CanonicalJSON": -1,
        "GateVocabulary": 0, "SealedFormat": 0,
        "OpenSSLCrypto": 1, "PayloadComposition": 1, "KeyLifecycle": 1, "CourierModel": 1,
        "BundleModel": 2, "GateRecords": 2,
        "CompliancePolicy": 3, "PolicyPages": 3, "PolicyStatutes": 3, "AuditTrail": 3, "WireProtocol": 3,
        "PolicyProof": 4, "SendPlanning": 4,
        "GateSteps": 5,
        "GatewayPipeline": 6, "UnixHTTPClient": 6, "UnixSockets": 6,
        "UnixSocketEndpoint": 7, "SQLiteStore": 7, "TrailDirectory": 7, "PolicyFiles": 7, "KeyFiles": 7,
        "DeliveryRelay": 7, "CommandTerminal": 7, "ConfigurationPages": 7, "CourierProviders": 7,
        "SendgateClient": 7, "SealedPush": 7,
        "PublicPages": 8, "ImportFiles": 8, "GateBench": 8, "GateDemo": 8, "Courier": 8,
        "sendgate": 9, "sendgate-courier": 9,
    ]

    /// Headers of C libraries: no Swift in them, and ``outside`` says who may use each.
    static let systemModules: Set<String> = ["CIDN2", "COpenSSL", "CSQLite", "CSodium"]

    /// What the world offers, and who may use it. Everything else is only for layer 6 and above.
    static let outside: [String: Set<String>] = [
        "CIDN2": ["GateVocabulary"],
        "COpenSSL": ["OpenSSLCrypto"],
        "CSodium": ["OpenSSLCrypto"],
        "Crypto": ["CourierModel", "CourierProviders", "SealedPush", "GateBench", "GateDemo"],
        "CryptoExtras": ["CourierProviders"],
        // Where the platform has it; see `ConditionalCodeTests`.
        "CryptoKit": ["SealedPush"],
        "CSQLite": ["SQLiteStore"],
        "Yams": ["PolicyPages"],
        "Configuration": ["sendgate"],
        "ArgumentParser": ["CommandTerminal", "Courier", "sendgate"],
        "Histogram": ["GateBench", "sendgate"],
        "NIOCore": ["Courier", "CourierProviders", "PublicPages", "UnixSocketEndpoint", "UnixHTTPClient"],
        "NIOPosix": ["Courier", "CourierProviders", "PublicPages", "UnixSocketEndpoint", "UnixHTTPClient"],
        "NIOHTTP1": ["Courier", "CourierProviders", "PublicPages", "UnixSocketEndpoint", "UnixHTTPClient"],
        "NIOTLS": ["CourierProviders"],
        "NIOSSL": ["CourierProviders"],
        "NIOHTTP2": ["CourierProviders"],
        "NIOHPACK": ["CourierProviders"],
        "NIOConcurrencyHelpers": ["UnixSocketEndpoint", "UnixHTTPClient"],
        "ServiceLifecycle": [
            "Courier", "PublicPages", "UnixSocketEndpoint", "DeliveryRelay", "GateDemo", "sendgate",
        ],
        "UnixSignals": ["Courier", "GateDemo", "sendgate"],
        "Logging": [
            "Courier", "CourierProviders", "PublicPages", "UnixSocketEndpoint", "DeliveryRelay",
            "GatewayPipeline",
            "sendgate",
            "SQLiteStore", "GateDemo", "CommandTerminal",
        ],
        "FoundationEssentials": ["SealedPush"],
        "Foundation": [
            "Courier", "CourierProviders", "GateSteps", "GatewayPipeline", "UnixHTTPClient",
            "UnixSocketEndpoint",
            "SQLiteStore",
            "TrailDirectory",
            "PolicyFiles", "KeyFiles", "DeliveryRelay", "SendgateClient", "SealedPush", "sendgate",
            "CommandTerminal", "GateBench", "GateDemo",
        ],
        "Dispatch": [
            "GatewayPipeline", "UnixHTTPClient", "UnixSocketEndpoint", "SQLiteStore", "PolicyFiles",
            "GateBench", "sendgate",
        ],
        "Glibc": [
            "ConfigurationPages", "Courier", "CourierProviders", "ImportFiles", "UnixHTTPClient",
            "UnixSockets",
            "PublicPages", "UnixSocketEndpoint", "SQLiteStore",
            "TrailDirectory",
            "PolicyFiles",
            "KeyFiles", "DeliveryRelay", "SendgateClient", "SealedPush", "sendgate",
        ],
        // What `FileSeenMessages` has in place of Glibc.
        "Darwin": ["SealedPush"],
        "Android": ["SealedPush"],
    ]

    /// Pure modules may use the standard library's own modules.
    static let everywhere: Set<String> = ["Synchronization", "Swift"]

    static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static let sources: [(module: String, file: String, imports: [String])] = {
        let folder = root.appending(path: "Sources")
        let accessLevels: Set<Substring> = ["public", "package", "internal", "private"]
        var found: [(String, String, [String])] = []
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)!
        for case let file as URL in files where file.pathExtension == "swift" {
            let relative = file.path(percentEncoded: false)
                .replacing(folder.path(percentEncoded: false) + "/", with: "")
            let module = String(relative.split(separator: "/")[0])
            let text = try! String(contentsOf: file, encoding: .utf8)
            let imports = text.split(separator: "\n").compactMap { line -> String? in
                guard line.contains("import ") else { return nil }
                var words = line.split(separator: " ")
                words.removeAll { $0.hasPrefix("@") || accessLevels.contains($0) }
                guard words.count >= 2, words[0] == "import" else { return nil }
                let name = ["struct", "enum"].contains(words[1]) ? words.last! : words[1]
                return String(name.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
            }
            found.append((module, relative, imports))
        }
        return found
    }()

    @Test func `every module in Sources has a layer and every layer is built`() {
        let modules = Set(Self.sources.map(\.module)).union(Self.systemModules)
        #expect(modules == Set(Self.layers.keys))
    }

    @Test func `the handbook says of every module what it is for, on its layer`() throws {
        let page = try String(
            contentsOf: Self.root.appending(path: "Sources/sendgate/Sendgate.docc/Contributing.md"),
            encoding: .utf8)
        var found: [String: Double] = [:]
        for row in page.matches(of: /(?m)^\| (-?\d) \| ((?:`[\w-]+` ?)+)\| \S/) {
            for module in row.output.2.matches(of: /`([\w-]+)`/) {
                found[String(module.output.1)] = Double(row.output.1)
            }
        }
        #expect(found == Self.layers)
    }

    @Test func `a module imports lower layers only`() throws {
        #expect(Self.sources.count > 50, "the sources were not found, so nothing was checked")
        for (module, file, imports) in Self.sources {
            let layer = try #require(Self.layers[module])
            for name in imports {
                if let other = Self.layers[name], !Self.systemModules.contains(name) {
                    #expect(other < layer, "\(file) imports \(name), which is not below \(module)")
                } else if !Self.everywhere.contains(name) {
                    let allowed = Self.outside[name] ?? []
                    #expect(
                        allowed.contains(module), "\(file) imports \(name), which is no business of \(module)"
                    )
                }
            }
        }
    }

    /// Every module that a module needs, itself included.
    private static func closure(of module: String) -> Set<String> {
        var (found, left): (Set<String>, [String]) = ([], [module])
        while let next = left.popLast() {
            guard found.insert(next).inserted else { continue }
            left += sources.filter { $0.module == next }.flatMap(\.imports)
        }
        return found
    }

    @Test func `the courier links no store, no steps and no key of the gateway, and the gateway no TLS`() {
        let courier = Self.closure(of: "sendgate-courier")
        #expect(courier.contains("CourierProviders") && courier.contains("NIOSSL"))
        let gateways: Set = [
            "AuditTrail", "CSQLite", "CompliancePolicy", "DeliveryRelay", "GateSteps", "GatewayPipeline",
            "KeyFiles", "KeyLifecycle", "PolicyFiles", "GateRecords", "SQLiteStore", "TrailDirectory",
            "UnixSocketEndpoint",
        ]
        #expect(courier.isDisjoint(with: gateways))
        let gate = Self.closure(of: "sendgate")
        #expect(gate.isSuperset(of: gateways))
        #expect(gate.isDisjoint(with: ["Courier", "CourierProviders", "NIOSSL", "NIOHTTP2", "NIOTLS"]))
    }

    @Test func `the manifest names exactly what the sources import`() throws {
        let manifest = try String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8)
        let declaration =
            /module\(\s*"(\w+)"(?:,\s*\[(?<dependencies>[^\]]*)\])?(?:,\s*\w+: \w+)*\s*\)/
        var declared: [String: Set<String>] = [:]
        for match in manifest.matches(of: declaration) {
            let names = (match.output.dependencies ?? "").matches(of: /"(\w+)"/).map { String($0.1) }
            declared[String(match.output.1)] = Set(names).intersection(Self.layers.keys)
        }
        let binaries: Set = ["sendgate", "sendgate-courier"]
        for module in Self.layers.keys
        where !Self.systemModules.contains(module) && !binaries.contains(module) {
            let imported = Self.sources.filter { $0.module == module }.flatMap(\.imports)
            #expect(declared[module] == Set(imported).intersection(Self.layers.keys), "\(module)")
        }
    }

    /// A step gets time, ids, zones of a person and keys' public halves from its caller; what it may not do otherwise it
    /// cannot do here at all.
    @Test func `steps reach neither clock, randomness, thread nor process`() throws {
        let forbidden =
            /\b(?:SystemRandomNumberGenerator|ProcessInfo|FileManager|FileHandle|Thread|Task|Mutex|Dispatch\w*|Clock|Logger|getenv|geteuid|getpid|gettimeofday|clock_gettime|SecureRandom)\(|\bDate\(\)|\.random\(/
        var count = 0
        for (module, file, imports) in Self.sources where ["GateSteps", "GateRecords"].contains(module) {
            count += 1
            #expect(!imports.contains("Foundation") || file == "GateSteps/LocalTime.swift", "\(file)")
            let text = try String(
                contentsOf: Self.root.appending(path: "Sources/\(file)"), encoding: .utf8)
            let found = text.split(separator: "\n").filter { !$0.contains("///") && $0.contains(forbidden) }
            #expect(found.isEmpty, "\(file)")
        }
        #expect(count > 30)
    }

    @Test func `every error that leaves its module says itself in words`() throws {
        let texts = try Self.sources.map { source in
            (
                source.module,
                try String(contentsOf: Self.root.appending(path: "Sources/\(source.file)"), encoding: .utf8)
            )
        }
        // Apps report the case of these and show nothing (see the type).
        let silent: Set<String> = ["SealedPushError", "TooManyMessages"]
        let declaration = /(?:package|public) (?:enum|struct) (\w+): ([^{]*\bError\b[^{]*)\{/
        var count = 0
        for (module, text) in texts {
            for match in text.matches(of: declaration) where !silent.contains(String(match.1)) {
                count += 1
                let isExtended = texts.contains {
                    $0.0 == module && $0.1.contains("extension \(match.1): CustomStringConvertible")
                }
                #expect(match.2.contains("CustomStringConvertible") || isExtended, "\(module).\(match.1)")
            }
        }
        #expect(count > 20)
    }

    @Test func `only the module that owns a danger writes it down, and with a reason`() throws {
        for (_, file, _) in Self.sources {
            let text = try String(
                contentsOf: Self.root.appending(path: "Sources/\(file)"), encoding: .utf8)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            for (number, line) in lines.enumerated()
            where line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)") {
                let before = lines[max(0, number - 6)...number]
                #expect(before.contains { $0.contains("//") }, "\(file):\(number + 1) gives no reason")
            }
        }
    }
}
