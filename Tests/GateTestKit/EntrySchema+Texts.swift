import CanonicalJSON
package import GateRecords
import GateVocabulary

extension TextRule {
    /// Whether it lets nothing through but the digits of an id, a tag or a digest.
    var isOpaque: Bool {
        [TextRule.pseudonym, .uuid, .sha256].contains { $0.schema == schema }
    }
}

extension EntrySchema {
    /// Where an entry has texts: the kind and the names of the members down to the text, and whether nothing but digits of
    /// an id, a tag or a digest can stand there.
    package var texts: [(path: [String], isOpaque: Bool)] {
        func texts(_ path: [String], _ shape: Shape) -> [(path: [String], isOpaque: Bool)] {
            switch shape {
            case .boolean, .integer, .null: []
            case .text(let rule): [(path, rule.isOpaque)]
            case .choice: [(path, false)]
            case .list(let element, _, _), .nullable(let element), .named(_, let element, _):
                texts(path, element)
            case .object(let object):
                object.members.flatMap { texts(path + [$0.name], $0.shape) }
                    + (object.others.map {
                        texts(path, .map(keys: $0.keys, values: $0.values, countMax: $0.countMax))
                    } ?? [])
            case .variants(let variants):
                variants.variants.flatMap { texts(path, .object($0.shape)) }
                    + (variants.withoutKey.map { texts(path, .object($0)) } ?? [])
            case .map(let keys, let values, _, _): [(path + ["*"], keys.isOpaque)] + texts(path, values)
            case .either(let shapes): shapes.flatMap { texts(path, $0) }
            case .anything, .foreign: [(path, false)]
            }
        }
        return kindNames.flatMap { kind in
            members(of: kind).map { texts([kind.text], .object($0)) } ?? []
        }
    }
}
