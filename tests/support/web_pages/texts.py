"""Paragraphs in several languages, long enough to be an article."""

EN: tuple[str, ...] = (
    "The harbour town of Vellmar opened its new tidal swimming pool on Saturday, eleven months later than planned. The basin is cut into the old slipway and fills by itself twice a day, so that no pump is needed.",
    "Engineers had warned in spring that the sluice gate would not withstand the autumn storms. It was replaced by a gate of oak and bronze that weighs 4.2 tonnes and closes within nine seconds when the water rises too quickly.",
    "Entry is free until the end of October. After that the council will charge three crowns, which pays for two lifeguards and for the repair of the changing rooms on the north wall.",
)
DE: tuple[str, ...] = (
    "Die Stadtwerke von Ahrnfeld haben am Dienstag das erste Wärmenetz in Betrieb genommen, das seine Energie aus dem Abwasser der Färberei bezieht. Rund 1.400 Wohnungen werden damit im Winter geheizt.",
    "Die Leitung ist sechs Kilometer lang und verläuft unter der alten Bahntrasse. Für die Wärmetauscher wurde ein Gebäude gewählt, das seit zwanzig Jahren leer stand und nun wieder einen Zweck hat.",
    "Die Kosten von 18 Millionen Euro trägt die Stadt zur Hälfte. Die Mieterinnen und Mieter sollen nach Angaben des Bürgermeisters nicht mehr bezahlen als bisher.",
)
FR: tuple[str, ...] = (
    "La bibliothèque de Saint-Orven a rouvert ses portes après deux ans de travaux. La salle de lecture, éclairée par une verrière de quarante mètres, accueille désormais trois cents lecteurs chaque jour.",
    "Les architectes ont conservé les rayonnages de chêne et ont caché le chauffage dans le sol. Une équipe de six restaurateurs a nettoyé les fresques du plafond, qui étaient noires de fumée.",
    "L'entrée est gratuite pour les habitants de la commune. Les autres visiteurs paient deux euros, et la somme sert à acheter des livres pour les enfants de l'école voisine.",
)
ZH: tuple[str, ...] = (
    "临江市图书馆周三宣布,馆藏的四万张老照片已经全部完成数字化,市民可以在网上免费浏览。这些照片拍摄于一九一二年至一九六八年之间,记录了码头、集市和学校的日常生活。",
    "项目负责人陈雨桐介绍,团队用了三年时间清洗玻璃底片,并为每张照片写下说明。其中约六百张照片的拍摄地点至今无法确认,图书馆希望老居民能够提供线索。",
    "今年秋天,图书馆还将在旧船厂举办展览,展出其中的二百张照片,门票免费。展览期间每周末都有讲座,由当年的工人和他们的后代讲述照片背后的故事。学校可以提前预约,由馆员带领参观并讲解冲印的方法。",
    "数字化的费用由市政府和三家企业共同承担,总额为八百七十万元。图书馆表示,明年将继续整理馆藏的地图和船只图纸,并邀请大学的研究人员参与。所有的图像都可以用于教学,但商业使用需要事先申请。",
)
JA: tuple[str, ...] = (
    "海辺の町、潮見町は土曜日、廃校になった小学校を改装した宿泊施設を開いた。教室は八つの客室になり、体育館では地元の漁師が朝市を開く。黒板や机はそのまま残され、宿泊客は自由に使うことができる。",
    "改装には一億二千万円がかかり、その半分を住民の出資でまかなった。設計を担当した森川さんは、床の板をすべて一度はがして磨き直し、校庭の桜の木を動かさずに新しい浴場を建てたと話す。",
    "最初の月の予約はすでに埋まっている。町は来年、近くの灯台までの遊歩道を整備し、音楽室を小さな映画館として使う予定だ。料理には地元の野菜と魚が使われ、給食の献立を再現した朝食も用意される。",
    "卒業生の一人は、思い出の場所がなくならずに済んでうれしいと語った。施設では十人が働いており、そのうち七人は町の出身者である。町長は、人口が減る中でも人が集まる場所を増やしたいとしている。",
)
KO: tuple[str, ...] = (
    "해안 도시 은평항은 토요일 오래된 통조림 공장을 고쳐 만든 시장을 열었다. 시장에는 어부 서른두 명의 가게가 있으며, 지붕에는 빗물을 모으는 장치가 설치되어 화장실과 청소에 사용된다.",
    "공사에는 십사 개월이 걸렸고 비용은 사십억 원이었다. 건축가 한지우는 벽돌을 하나도 버리지 않았으며 굴뚝을 전망대로 바꾸었다고 말했다. 전망대에서는 등대와 염전을 한눈에 볼 수 있다.",
    "시는 내년 봄까지 버스 노선을 늘릴 계획이다. 주말마다 요리 교실이 열리며 참가비는 무료이지만 미리 예약해야 한다. 학생들은 공장의 역사를 소개하는 작은 전시관도 둘러볼 수 있다.",
    "상인회 회장은 손님이 예상보다 두 배 많았다고 밝혔다. 다음 달에는 인근 섬의 농부들도 가게를 열 예정이며, 시장의 수익 일부는 해변 청소와 어린이 도서관에 쓰인다.",
)
RU: tuple[str, ...] = (
    "В городе Северный Лог открыли мост, который строили четыре года. Он соединяет старую пристань с новым вокзалом и выдерживает ледоход, потому что его опоры стоят на скале, а не на песке, как прежде.",
    "По словам инженера Веры Лазаревой, бетон для опор заливали только зимой, когда вода стоит низко. Старый деревянный мост не стали разбирать: теперь по нему ходят только пешеходы и рыбаки.",
    "Проезд по мосту бесплатный. Весной рядом появится набережная с деревьями и скамейками, а в доме смотрителя откроют небольшой музей истории реки и лесосплава.",
)
AR: tuple[str, ...] = (
    "افتتحت مدينة الواحة يوم السبت أول محطة لتحلية المياه تعمل بالطاقة الشمسية وحدها. تنتج المحطة تسعة آلاف متر مكعب من المياه في اليوم، وهذا يكفي سكان المدينة والقرى التي حولها.",
    "قالت المهندسة ليلى حداد إن العمل استمر ثلاث سنوات، وإن الألواح الشمسية صنعت في مصنع محلي. وقد تم حفر قناة طويلة من البحر إلى المحطة حتى لا تتأثر الأسماك بالمياه المالحة.",
    "سوف تبيع المدينة الفائض من الكهرباء في الصيف، وتستخدم المال لترميم السوق القديم. ويمكن للمدارس أن تزور المحطة كل يوم ثلاثاء دون مقابل.",
)

JA_MORE: tuple[str, ...] = (
    "施設の周りには畑が広がり、宿泊客は収穫を手伝うこともできる。夜には校庭で焚き火を囲み、漁師から海の話を聞く会が開かれる。雨の日には理科室で天体の模型を作る教室があり、子どもたちに人気だという。",
    "町では、空き家を直して移り住む人への補助も始めた。これまでに五つの家族が移住し、そのうち二組は施設で働いている。近くの駅からは一日四本のバスが出ており、予約をすれば港まで迎えの車も来る。",
)
ZH_MORE: tuple[str, ...] = (
    "展厅里还复原了一间旧暗房,参观者可以亲手冲印一张照片并带回家。馆员说,许多老人在照片中认出了自己的父母,也有人捐出了家里保存多年的相册和信件,这些资料将在明年整理出版。",
)
KO_MORE: tuple[str, ...] = (
    "시장 옆에는 자전거 도로와 작은 공원이 생겼고, 저녁에는 조명이 켜져 산책하는 사람이 많다. 관광 안내소는 영어와 일본어 지도를 나누어 주며, 배를 타고 섬을 도는 여행도 예약할 수 있다.",
)
